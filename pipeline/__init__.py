"""Corpora to tokens: readers, extraction, shards, Beam stages, SQL."""
