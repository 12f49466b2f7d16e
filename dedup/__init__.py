"""The same text twice: shingles, MinHash, bands, verified pairs, held-out and evaluation text."""
