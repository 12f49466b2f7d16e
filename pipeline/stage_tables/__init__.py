"""The stages of each feature; pipeline/stages.py joins them."""
