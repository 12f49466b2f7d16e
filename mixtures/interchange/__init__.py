"""Tokens and windows in the formats of other trainers and loaders."""
