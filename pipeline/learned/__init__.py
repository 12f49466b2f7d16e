"""Models learnt from examples: classifiers, labels for them, language models. Verbs in commands."""
