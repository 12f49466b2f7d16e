"""Text in, numbers out: normalization, units of text, language, quality signals, presets."""
