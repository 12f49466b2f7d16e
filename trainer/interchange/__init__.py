"""Models in the format of transformers: out with a proof, and in to be trained on."""
