"""Studies: arms x seeds, paired statistics, a verdict and its report."""
