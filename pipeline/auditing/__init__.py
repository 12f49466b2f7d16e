"""Is deduplication right: pairs looked at, recall and precision measured, losses by source."""
