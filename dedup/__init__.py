"""The same text twice: shingles, MinHash, bands, verified pairs, held-out contamination."""
