"""What of a recipe is no bound on a signal, and where it is done."""

from __future__ import annotations

LEFT_OUT: dict[str, str] = {
    "c4": "lines are taken out by `edits: [c4]`; bad words; one copy of a line in the corpus, "
    "which is deduplication; TFDS has at most 190,000 characters a page",
    "mc4": "bad words; one copy of a line in the corpus",
    "refinedweb": "lists of addresses; the lines themselves stay: see the signals of `lines`",
    "dclm": "lists of addresses; the classifier on top, which is one of your own; three phrases "
    "(items in cart, Read more, Sign-in) that are cut out of short lines",
    "fineweb": "lists of addresses; language (`lang_score >= 0.65`); Gopher and C4, which are "
    "presets by themselves; the log-probability of single words",
    "fineweb2": "its list of the words that each language has",
    "nemo_curator": "a boilerplate phrase in the first or last paragraph drops the page there, so "
    "any footer does; here only the share of lines counts",
    "data_juicer_c4": "perplexity at most 6,000; links and mail addresses are taken out first",
    "data_juicer_cc": "perplexity at most 5,000; flagged words at most .0015; links likewise",
    "data_juicer_bloom": "perplexity at most 1,500; flagged words at most .01; stop words of its "
    "list at least .3",
    "data_juicer_zh": "flagged words at most .017",
    "map_neo": "lists of addresses, by prefix: `ab.com` blocks `ab.community` there; the rewriting "
    "of 。 to . and the removal of all words with a dot, which change the text that later rules "
    "see; rules for lines, which no code calls",
    "chinese_web_text": "distinct sensitive words per line at most .5; simplified text only, for "
    "which a corpus asks `lang_variant = 'Hans'`: there one character that has another simplified "
    "form (乾, 著) drops the page",
    "zyda": "its word lists: pornography, sexual words, profanity",
}
