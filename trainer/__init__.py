"""From a mixture to a model and a verdict: trainer, evaluation, ablation, command line."""
