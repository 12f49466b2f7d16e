"""Beam stages, one a file. The bodies are plain functions over shards."""
