"""Looking at a corpus: what rules do to it, how signals spread, single documents, two corpora."""
