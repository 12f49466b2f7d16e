"""How much of what, in which order: selection, packing, schedule, loader."""
