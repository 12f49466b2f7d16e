"""What of a recipe is no bound on a signal, and where it is done."""

from __future__ import annotations

_ADDRESSES = "lists of addresses: `not urls.blocked`, by lists of your own (`urls` of corpus.yaml)"
_TOKENS = (
    "perplexity at most {:,} for a token of Wikipedia's SentencePiece by its KenLM: neither ships, "
    "and bits a character of another model are another number; `perplexity.bucket` is by rank"
)

LEFT_OUT: dict[str, str] = {
    "c4": "lines are taken out by `edits: [c4]`; bad words, which are `c4_bad_words`; one copy of "
    "a line in the corpus, which is deduplication; TFDS has at most 190,000 characters a page",
    "c4_bad_words": "datatrove can keep a share of such pages by chance; by default none",
    "mc4": "one copy of a line in the corpus",
    "refinedweb": f"{_ADDRESSES}; the lines themselves stay: see the signals of `lines`",
    "dclm": f"{_ADDRESSES}; the classifier on top, which is one of your own; three phrases "
    "(items in cart, Read more, Sign-in) that are cut out of short lines",
    "fineweb": f"{_ADDRESSES}; Gopher and C4, which are presets by themselves",
    "nemo_curator": "a boilerplate phrase in the first or last paragraph drops the page there, so "
    "any footer does; here only the share of lines counts",
    "data_juicer_c4": f"{_TOKENS.format(6_000)}; links and mail addresses are taken out first",
    "data_juicer_cc": f"{_TOKENS.format(5_000)}; links likewise",
    "data_juicer_bloom": f"{_TOKENS.format(1_500)}; stop words at least .3 of words, by lists of "
    "its own, which no package has",
    "map_neo": f"{_ADDRESSES}, by prefix there: `ab.com` blocks `ab.community`; the rewriting "
    "of 。 to . and the removal of all words with a dot, which change the text that later rules "
    "see; rules for lines, which no code calls",
    "chinese_web_text": "distinct sensitive words per line at most .5: its list is of "
    "politics in large part (names, 民主, 腐败, 舆论) and is not shipped; of a list of your own, "
    "`lists.sensitive / c4.num_lines <= 0.5` counts each time that a word stands there",
    "zyda": "at most one phrase of a list of Chinese pornographic sites, which is not shipped; "
    "`unsafe` has others",
}
