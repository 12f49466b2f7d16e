from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, get_args

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters import language
from filters.presets import CUTS, LEFT_OUT, OWN, RECIPES, expression, first_reason, needs, reasons
from filters.segments import Texts
from filters.signals import GROUPS
from filters.stop_words import STOP_WORDS
from pipeline.kinds import Kind

# Sound text of each language and kind of Chinese: it passes every rule.
EN = (
    "The river rose in the night, and by morning the lower fields were under water. We moved our "
    "sheep up to a hill above the village. Children carried whatever they could hold with them, "
    "and the old people had to be helped along.\n"
    "Nobody slept until noon, when rain stopped and somebody lit fires for those who had nothing "
    "dry left. It has been worse, said my grandfather, but he never told us which year he meant. "
    "We had no wish to ask him twice while our feet were cold.\n"
    "In the evening a boat came round from town with bread, candles and two letters. Its owner "
    "wanted no money; he only asked us whether our bridge was still standing. Half of it was, so "
    "he moored there and stayed for supper."
)
ZH = (
    "夜里河水涨了，到早上低处的田已经淹没在水中。我们把羊赶到山上，孩子们拿着能带走之物跟在后面，"
    "老人由年轻人扶着慢慢走。直到中午雨停，村里才有人生起火，给那些衣服湿透者取暖。\n"
    "爷爷说以前比这更糟，可是他没讲清楚究竟哪一年。傍晚太阳出来，大家回家收拾屋子，清点粮食，"
    "准备明天修堤坝。母亲煮了一大锅姜汤，左邻右舍都来喝，屋里挤得转不开身。\n"
    "天黑以后，一条小船从镇里划来，带着面包、蜡烛和两封信。船主不肯收钱，只问桥还在不在。桥塌了"
    "半边，他就把缆绳系在剩下那半边柱子上，留下吃晚饭，讲起上游几个村子遇到怎样麻烦。"
)
YUE = (
    "尋晚落咗成晚大雨，條河啲水漲到入咗田。我哋一早起身，將啲羊趕晒上山，細路仔攞住自己嘅書包跟喺"
    "後面，阿婆行得慢，我就扶住佢。去到山頂嗰陣，大家都濕晒身，有人搵到啲乾柴，生咗個火俾人取暖。\n"
    "阿爺話舊時仲慘，不過佢冇講係邊一年嘅事。等到下晝雨停咗，我哋返屋企執嘢，睇吓仲有幾多米。隔籬"
    "屋啲人煲咗薑茶，叫埋我哋一齊飲，成間屋逼到郁都郁唔到。\n"
    "夜晚有隻艇仔由鎮上面嚟，帶咗麵包同蠟燭。個船家唔肯收錢，淨係問條橋仲喺唔喺度。條橋冧咗一半，"
    "佢就將隻艇綁喺另外嗰一半，留低食飯，同我哋講上游啲村點樣捱過呢場水。"
)
LZH = (
    "歲在甲辰，秋大雨，河水夜溢，民之居下者皆沒焉。余與鄉人驅羊登山，老者杖而從，稚子負其書以行。"
    "及午雨霽，有拾薪者，乃舉火以燎衣，婦孺環坐，稍解其寒。余顧視故居，但見屋脊而已。\n"
    "或問於翁曰：昔亦有若是者乎？翁曰：有之，甚於今也。然不言其年，人亦莫敢復問。薄暮日出，各歸其廬，"
    "視其粟之存亡，而議修堤之事。鄰媼煮薑為湯，分飲諸家，室中無所容足。\n"
    "既夜，有舟自邑中來，載餅與燭，主人不受直，唯問橋之存否。橋已半圮，遂繫纜於其餘，留而共食，"
    "因言上游諸村所遭，某里失牛十頭，某家僅以身免，聞者莫不嘆息。及旦，水稍退，舟人辭去，余送之渡口。"
)
PROSE = {"en": EN, "zh": ZH, "zh-yue": YUE, "zh-lzh": LZH}
# Sound Chinese text of every kind that corpus.yaml knows.
KINDS_ZH = {
    "web": (
        "城北的旧书市场每到周末就热闹起来。摊主们天不亮就推着车来占位置，把书按年代和题材摆好。\n"
        "常来的人大多互相认识，有人专找上世纪的地方志，有人只收连环画。\n"
        "去年市场搬进了室内，租金涨了一倍，不少老摊主没有跟来。管理处说，新址有空调和仓库，下雨天也能"
        "营业；可是老顾客们还是怀念露天里翻书的日子。"
    ),
    "book": (
        "船靠岸的时候天还没有亮。老周把缆绳系在木桩上，回头看了一眼江面，雾很重，对岸的灯一盏也看不见。"
        "他在这条江上跑了三十年，从来没有遇到过这样大的雾。\n"
        "“爹，今天还走吗？”儿子从舱里探出头来问。\n"
        "“等一等吧。”他说，“雾散了再走，货主那边我去讲。”说完他蹲下来，点了一支烟，慢慢地抽着，"
        "听见远处有人在喊摆渡的名字。"
    ),
    "code": (
        "这个函数读取配置文件，并返回一个字典。如果文件不存在，就抛出异常，并在信息里写明路径。\n"
        "使用方法如下：\n"
        "先用默认值构造对象，再用文件中的值覆盖它；没有写在文件里的键保持默认值不变。\n"
        "def read_config(path):\n"
        "    # 先检查文件是否存在，再解析其中的内容\n"
        "    with open(path) as file:\n"
        "        return parse(file.read())\n"
        "注意：路径中可以有环境变量，它们在打开文件之前展开。解析出错时，行号和列号会一起报告，"
        "方便使用者找到有问题的地方。"
    ),
    "paper": (
        "摘要：本文研究了水库调度对下游河道泥沙淤积的影响。我们收集了某流域二十年来的水文观测资料，"
        "建立了一维水沙数学模型，并用实测断面进行了验证。\n"
        "结果表明，在汛期提前泄水的方案下，下游淤积量比现行方案减少约百分之十八，而发电损失不到百分之二。"
        "敏感性分析说明，结论对糙率的取值不敏感，但是与来沙级配有关。最后讨论了该方法的局限和推广到其他"
        "流域的条件。"
    ),
    "qa": (
        "问：刚买的铁锅总是生锈，应该怎么处理？\n"
        "答：新锅第一次用之前要开锅。先用热水洗净，擦干以后放在小火上烧热，用一块肥肉把锅的内壁擦一遍，"
        "让油渗进去，放凉后倒掉余油，再重复两三次就可以了。\n"
        "平时用完不要用洗洁精，拿热水和竹刷刷干净，然后在火上烘干，抹上薄薄的一层油。如果已经生锈，"
        "可以用细砂纸把锈磨掉，再按上面的办法重新开锅。"
    ),
    "forum": (
        "楼主：上个月从成都骑车到了康定，分享一下路上的情况。全程走了六天，最难的是翻二郎山那一段，"
        "雨下个不停，中间还爆了一次胎。\n"
        "二楼：请问路上住宿方便吗？我打算中秋节带朋友一起去。\n"
        "楼主：县城和镇上都有旅馆，一百块左右就能住得很干净，不过节假日最好提前打电话问一问。\n"
        "三楼：佩服！想知道你带了哪些工具，车子又是什么型号的？"
    ),
    "dialogue": (
        "甲：喂，你好，请问是家电维修中心吗？我家的洗衣机今天早上突然不转了。\n"
        "乙：您好，请说一下机器的型号，还有出问题之前有没有什么异常的声音？\n"
        "甲：型号写在背面，我看不太清楚。声音倒是有的，脱水的时候响得很厉害，像是有东西卡在里面。\n"
        "乙：明白了，可能是皮带松了或者有硬币掉进去。我们下午可以派师傅上门检查，您看三点钟方便吗？\n"
        "甲：可以，那我在家等着，麻烦他来之前先给我打个电话。"
    ),
}
# (name of a rule, side of its bound) -> what makes sound text fail it.
Break = Callable[[str], str]
_CYCLE = " please read much more" * 100 + "请看全文" * 100  # four words, over and over
_LISTED = {char for entries in STOP_WORDS.values() for entry in entries for char in entry}
_BARE = "".join(  # many characters, none of them a mark or a stop word
    char for i in range(900) if (char := chr(0x4E00 + 7 * i)) not in _LISTED
)
BREAKS: dict[tuple[str, str], Break] = {
    ("gopher.num_words", "min"): lambda text: text[:8],
    ("gopher.num_words", "max"): lambda text: text * 1500,
    ("gopher.mean_word_length", "min"): lambda text: "a b c. " * 50,
    ("gopher.mean_word_length", "max"): lambda text: text.replace(" ", ""),
    ("gopher.hash_ratio", "max"): lambda text: text + " #" * 400,
    ("gopher.ellipsis_ratio", "max"): lambda text: text + " ..." * 400,
    ("gopher.bullet_line_share", "max"): lambda text: "• " + text.replace("\n", "\n• "),
    ("gopher.ellipsis_line_share", "max"): lambda text: text.replace("\n", "……\n") + "……",
    ("gopher.alpha_word_share", "min"): lambda text: text + " 17" * 400,
    ("gopher.num_stop_words", "min"): lambda text: "zebra " * 99 + _BARE,
    **{
        (f"fineweb.num_{name}_words", "min"): lambda text: "zebra " * 99 + _BARE
        for name in ("yue", "lzh")
    },
    ("gopher.dup_line_share", "max"): lambda text: text + "\n展开" * 30,
    ("gopher.dup_paragraph_share", "max"): lambda text: text + "\n\n展开" * 30,
    ("gopher.dup_line_char_share", "max"): lambda text: f"{text}\n" * 9,
    ("gopher.dup_paragraph_char_share", "max"): lambda text: f"{text}\n\n" * 9,
    **{
        (f"gopher.top_{n}_gram_char_share", "max"): lambda text: text[:9] + _CYCLE
        for n in (2, 3, 4)
    },
    **{(f"gopher.dup_{n}_gram_char_share", "max"): lambda text: text * 4 for n in range(5, 11)},
    ("c4.sentences_after", "min"): lambda text: text.replace("\n", "...\n") + "...",
    ("c4.num_sentences", "min"): lambda text: _BARE,
    ("c4.num_lorem_ipsum", "max"): lambda text: "Lorem ipsum. " * 3 + text,
    ("c4.num_curly_brackets", "max"): lambda text: f"{{}} {text}",
    ("c4.num_policy_lines / c4.num_lines", "max"): lambda text: text + "\nPrivacy policy" * 9,
    ("c4.num_long_word_lines", "max"): lambda text: f"{text} {'x' * 1001}",
    ("fineweb.punctuation_line_share", "min"): lambda text: text + "\n更多 more" * 60,
    ("fineweb.short_line_share", "max"): lambda text: "\n".join(f"Line {i}." for i in range(9)),
    ("fineweb.newline_ratio", "max"): lambda text: text + "\n" * 400,
    ("lang_score", "min"): lambda text: "LOW SCORE" + text,
    ("num_chars", "min"): lambda text: text[:8],
    ("num_chars", "max"): lambda text: text * 500,
    ("chars.alnum_share", "min"): lambda text: text + "*" * 9000,
    ("chars.alnum_share", "max"): lambda text: text.replace(" ", "").replace(",", ""),
    ("chars.han_share", "min"): lambda text: text + "abc " * 900,
    ("chars.digit_share", "max"): lambda text: text + "1029384756" * 90,
    ("chars.symbol_share", "min"): lambda text: _BARE,
    ("chars.symbol_share", "max"): lambda text: text + "*+-/" * 900,
    ("chars.special_share", "min"): lambda text: text.replace(" ", ""),
    ("chars.special_share", "max"): lambda text: text + "*+-/" * 900,
    ("chars.space_share", "max"): lambda text: text.replace("a", "   " * 9).replace("，", " " * 90),
    ("chars.parenthesis_share", "max"): lambda text: text + "（)" * 900,
    ("chars.replacement_share", "max"): lambda text: text + "\ufffd" * 90,
    ("chars.num_runs", "max"): lambda text: text + " aaaaaaaa b" * 60,
    ("chars.lenticular_share", "max"): lambda text: f"【{'广告' * 30}】{text}",
    ("chars.distinct_share", "min"): lambda text: "哈" * 900,
    ("chars.entropy", "min"): lambda text: "哈" * 900,
    ("lines.mean_chars", "min"): lambda text: text + "\n一二" * 99,
    ("lines.mean_chars", "max"): lambda text: text.replace("\n", "") * 40,
    ("lines.max_chars", "max"): lambda text: text.replace("\n", "") * 40,
    ("lines.num_long", "min"): lambda text: text.replace(",", "\n").replace("，", "\n"),
    ("lines.read_more_share", "max"): lambda text: text + "\n展开" * 9,
    ("lines.removed_word_share", "max"): lambda text: text + "\nREAD THIS" * 9,
    ("repeats.char_10_gram_share", "max"): lambda text: "哈" * 900,
    ("repeats.word_5_gram_share", "max"): lambda text: text * 4,
    ("repeats.word_10_gram_share", "max"): lambda text: text * 4,
    ("repeats.word_13_gram_share", "max"): lambda text: text * 4,
    ("language_mix.hant_share", "max"): lambda text: f"{text}\n\n" + "這個問題還沒有解決。" * 199,
    ("unsafe.num_bad_words", "max"): lambda text: f"{text} porn 色情片",
    ("unsafe.num_bad_words / num_chars", "max"): lambda text: text + " porn 色情片" * 60,
    ("unsafe.num_pornography", "max"): lambda text: text + " pornhub 裸聊" * 60,
    ("unsafe.num_pornography / num_chars", "max"): lambda text: text + " pornhub 裸聊" * 60,
    ("unsafe.num_pornography / gopher.num_words", "max"): lambda text: text + " pornhub 裸聊" * 60,
    ("markup.url_chars / num_chars", "max"): lambda text: f"{text} https://a.cn/{'x' * 900}",
    ("markup.num_xml", "max"): lambda text: text + " xml" * 11,
    ("markup.num_urls / num_chars", "max"): lambda text: text + " https://a.cn" * 9,
    ("markup.num_www / num_chars", "max"): lambda text: text + " www.a" * 99,
    ("markup.num_tags / num_chars", "max"): lambda text: text + "<br>" * 99,
    ("markup.num_json_keys / num_chars", "max"): lambda text: text + ' "a": 1' * 9,
}


def documents(texts: list[str], key: str | None, kind: str = "web") -> pa.Table:
    """Rows as in the `documents` view; the language is what is said."""
    lang, _, variant = (key or "").partition("-")
    batch, langs = Texts(pa.array(texts)), pa.array([lang] * len(texts))
    table: dict[str, Any] = {
        "lang": pa.array([lang or None] * len(texts), pa.string()),
        "lang_variant": [variant] * len(texts),
        "lang_score": [0.1 if text.startswith("LOW") else 0.95 for text in texts],
        "kind": [kind] * len(texts),
        "num_chars": list(map(len, texts)),
    }
    for name in sorted(set().union(*map(needs, RECIPES)) - {"language"}):
        measured = GROUPS[name].measure(batch, {"lang": langs})
        table[name] = pa.table({n: pa.array(measured[n]) for n in measured}).to_struct_array()
    return pa.table(table)


def query(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("documents", table)
        return connection.execute(f"select {', '.join(columns)} from documents").fetchall()


def ask(text: str, key: str | None, *columns: str, kind: str = "web") -> tuple[Any, ...]:
    return query(documents([text], key, kind), *columns)[0]


def judged(table: pa.Table) -> list[dict[str, tuple[bool | None, list[str]]]]:
    """For each document and preset: does it pass, and which rules does it fail?"""
    columns = {preset: [expression(preset), *(f for _, f in reasons(preset))] for preset in RECIPES}
    found = []
    for row in query(table, *itertools.chain(*columns.values())):
        answers = iter(row)
        document = {}
        for preset, rules in RECIPES.items():
            passes, failed = next(answers), itertools.islice(answers, len(rules))
            document[preset] = passes, [r.name for r, f in zip(rules, failed, strict=True) if f]
        found.append(document)
    return found


def has_rules(preset: str, key: str) -> bool:
    return key.split("-")[0] in RECIPES[preset][0].bounds


@pytest.mark.parametrize("key", PROSE)
def test_prose_passes_every_rule(key: str) -> None:
    (found,) = judged(documents([PROSE[key]], key))
    assert found == {p: (True, []) if has_rules(p, key) else (None, []) for p in RECIPES}


@pytest.mark.parametrize("key", PROSE)
def test_each_rule_can_fire_on_each_side(key: str) -> None:
    """MAP-NEO's rules for n-grams never fired: each side of each bound has a text that fails it."""
    found = judged(documents([make(PROSE[key]) for make in BREAKS.values()], key))
    by_break = dict(zip(BREAKS, found, strict=True))
    silent = [
        (preset, rule.name, side)
        for preset, rules in RECIPES.items()
        if has_rules(preset, key)
        for rule in rules
        for side, value in (("min", rule.bound(key).minimum), ("max", rule.bound(key).maximum))
        if value is not None and rule.name not in by_break[rule.name, side][preset][1]
    ]
    assert silent == []


def test_every_break_breaks_a_rule() -> None:
    sides = {
        (rule.name, side)
        for rule in itertools.chain(*RECIPES.values())
        for bound in rule.bounds.values()
        for side, value in (("min", bound.minimum), ("max", bound.maximum))
        if value is not None
    }
    assert BREAKS.keys() == sides


PIECES = [*EN.split(" "), *ZH, "\n", "\n\n", "😀", "12 ", "#", "……", "(", "http://a "]


@given(st.lists(st.sampled_from(PIECES), max_size=400).map("".join), st.sampled_from(list(PROSE)))
@settings(max_examples=15, deadline=None)
def test_a_document_passes_where_no_rule_fails(text: str, key: str) -> None:
    (found,) = judged(documents([text], key))
    for preset, (passes, failed) in found.items():
        assert passes is (not failed if has_rules(preset, key) else None)


def test_chinese_of_every_kind_passes_out_of_the_box() -> None:
    """data-juicer #509: its default setting filtered all Chinese text out."""
    assert KINDS_ZH.keys() == set(get_args(Kind))
    texts = pa.array(KINDS_ZH.values())
    languages = language.measure(Texts(texts), {})["lang"]
    assert pa.array(languages).to_pylist() == ["zh"] * len(texts)
    rules = [rule for preset in ("gopher", "c4") for rule in reasons(preset)]
    failed = {
        kind: [name for name, sql in rules if ask(text, "zh", sql, kind=kind) == (True,)]
        for kind, text in KINDS_ZH.items()
    }
    expected: dict[str, list[str]] = {kind: [] for kind in KINDS_ZH}
    assert failed == expected
    assert [ask(text, "zh", expression("gopher")) for text in KINDS_ZH.values()] == [(True,)] * 7


@pytest.mark.parametrize("key", ["ko", "und", None])
def test_language_without_bounds_is_null(key: str | None) -> None:
    columns = [expression("gopher"), *(sql for _, sql in reasons("gopher"))]
    assert set(ask(EN, key, *columns)) == {None}


def test_the_kind_of_a_source_chooses_its_rules() -> None:
    passes, sql = expression("gopher"), dict(reasons("gopher"))
    short = "The answer is that it was closed to the public, and that nobody have told us."
    assert ask(short, "en", passes) == (False,)
    assert ask(short, "en", passes, kind="qa") == (True,)
    assert ask(short, "en", sql["gopher.num_words"], kind="forum") == (False,)
    assert ask(short + " #" * 20, "en", passes, kind="dialogue") == (False,)
    assert ask(EN, "en", passes, *sql.values(), kind="code") == (None,) * (1 + len(sql))
    answer = "问：店几点关门？\n答：九点。"  # ChineseWebText drops it for its length
    assert ask(answer, "zh", expression("chinese_web_text")) == (False,)
    assert ask(answer, "zh", expression("chinese_web_text"), kind="qa") == (True,)


def test_bounds_are_inclusive() -> None:
    sql = dict(reasons("gopher"))
    words = " ".join(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50))
    assert ask(words, "en", sql["gopher.num_words"]) == (False,)
    assert ask(words.rsplit(" ", 1)[0], "en", sql["gopher.num_words"]) == (True,)
    assert ask(words + " #" * 5, "en", sql["gopher.hash_ratio"]) == (False,)  # 5 / 50 == .1
    assert ask(words + " #" * 6, "en", sql["gopher.hash_ratio"]) == (True,)


def test_needs_and_unknown_preset() -> None:
    assert needs("gopher") == {"language", "gopher"}
    assert needs("fineweb") == {"language", "gopher", "fineweb"}
    assert needs("zyda") == {"language", "gopher", "c4", "chars", "markup", "unsafe"}
    with pytest.raises(ValueError, match="no preset 'gofer'; did you mean 'gopher'. presets: gop"):
        expression("gofer")


def test_every_rule_says_for_each_language_where_its_bound_is_from() -> None:
    for preset, rules in RECIPES.items():
        languages = {key for key in rules[0].bounds if "-" not in key}
        for rule in rules:
            assert {key for key in rule.bounds if "-" not in key} == languages, (preset, rule.name)
            for bound in rule.bounds.values():
                assert bound.correction if bound.is_off else bound.source, (preset, rule.name)
        assert len({rule.name for rule in rules}) == len(rules)
    assert LEFT_OUT.keys() <= RECIPES.keys()


def test_every_rule_reads_a_column() -> None:
    flat = {*GROUPS["language"].columns, "num_chars"}
    for rule in itertools.chain(*RECIPES.values(), *OWN.values()):
        where = re.findall(r"[a-z_]+\.[a-z_]+", rule.where)
        for column in filter(None, (rule.signal, rule.per, *where)):
            group, _, name = column.partition(".")
            assert name in GROUPS[group].columns if name else column in flat


# What the originals get wrong, each by the text that shows it.


def test_clean_chinese_is_not_above_a_maximum_of_alphanumerics() -> None:
    (share,) = ask(ZH, "zh", "chars.alnum_share")
    assert share > 0.8591  # the maximum of the CC-2023-06 recipe, data-juicer #98 and #267
    assert ask(ZH, "zh", expression("data_juicer_cc")) == (True,)


def test_the_original_has_it_the_other_way_for_english() -> None:
    assert ask(EN, "en", "chars.alnum_share")[0] < 0.8591


def test_a_unique_bigram_repeats_nothing() -> None:  # datatrove 0.6.0 drops it
    text = "Photosynthesis converts sunlight into chemical energy."
    assert ask(text, "en", "gopher.top_2_gram_char_share") == (0.0,)


def test_ngram_rules_of_map_neo_fire() -> None:  # filter.py:419, a pair is always true
    sql = dict(reasons("map_neo"))
    text = ZH[:9] + "看全文，" * 60
    names = [name for name in sql if "_gram_" in name]
    assert ask(text, "zh", *(sql[name] for name in names)) == (True,) * 9


def test_long_text_keeps_its_distinct_characters() -> None:
    long = "\n".join(ZH.replace("河", char) for char in ZH)
    assert len(set(long)) / len(long) < 0.1  # MAP-NEO's bound, of the whole text
    sql = dict(reasons("map_neo"))
    assert ask(long, "zh", sql["chars.distinct_share"], sql["num_chars"]) == (False, False)


def test_chinese_ends_its_sentences() -> None:  # Curator constants.py: . ? ! " '
    sql = dict(reasons("nemo_curator"))["fineweb.punctuation_line_share"]
    for mark in "。！？…；”』」":
        assert ask("\n".join([f"天气很好{mark}"] * 9), "zh", sql) == (False,)


def test_a_full_stop_of_chinese_is_punctuation() -> None:  # MAP-NEO: ASCII and …
    assert ask("天气很好。", "zh", dict(reasons("map_neo"))["chars.symbol_share"]) == (False,)


def test_line_ends_decide_nothing() -> None:  # datatrove drops CRLF text
    crlf = ZH.replace("\n", "\u3000\n")
    for preset in RECIPES:
        assert ask(crlf, "zh", expression(preset)) == (True,)


def test_han_after_u9fa5_counts() -> None:  # ChineseWebText: [\u4e00-\u9fa5]
    text = "龦鿿㐀𠀀" * 60
    assert ask(text, "zh", dict(reasons("chinese_web_text"))["chars.han_share"]) == (False,)


def test_one_traditional_character_drops_nothing() -> None:
    assert ask(ZH.replace("后", "後", 1), "zh", expression("chinese_web_text")) == (True,)


def test_a_chinese_paragraph_is_no_long_word() -> None:
    text = ZH.replace("\n", "") * 8
    assert ask(text, "zh", dict(reasons("nemo_curator"))["c4.num_long_word_lines"]) == (False,)


def test_verses_are_no_short_lines_where_they_are_classical() -> None:
    sql = dict(reasons("chinese_web_text"))["lines.mean_chars"]
    verses = "床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"
    assert ask(verses, "zh", sql) == (True,)
    assert ask(verses, "zh-lzh", sql) == (None,)


def test_cantonese_has_its_own_bounds() -> None:
    rule = dict(reasons("fineweb2"))["gopher.dup_line_share"]
    text = "\n".join(["落雨", "落雨", "落雨", "好天", "返工"])  # .4: above .287, below .442
    assert ask(text, "zh", rule) == (True,)
    assert ask(text, "zh-yue", rule) == (False,)


@pytest.mark.parametrize("key", PROSE)
def test_no_preset_is_undecided_on_odd_texts(key: str) -> None:
    for found in judged(documents(["", "。", "a", "的", "\n\n", "😀", "啊" * 200_000], key)):
        for preset, (passes, failed) in found.items():
            assert passes is (not failed if has_rules(preset, key) else None)


# The cuts of our own detectors.


def scored(lang: str | None, kind: str = "web", **scores: float | None) -> pa.Table:
    """A row as in the `documents` view, with these scores; the others are 0."""
    found = {name.split(".")[0]: 0.0 for name in CUTS} | scores
    structs = {
        group: pa.table({"score": pa.array([score], pa.float32())}).to_struct_array()
        for group, score in found.items()
    }
    return pa.table({"lang": pa.array([lang], pa.string()), "kind": [kind]} | structs)


def test_clean_has_the_published_cuts() -> None:
    assert {name: cut for name, (cut, _) in CUTS.items()} == {
        "ads.score": 0.2,
        "unsafe.score": 0.3,
        "broken.score": 0.1,
        "copied.score": 0.4,
        "generated.score": 0.5,
    }
    assert needs("clean") == {"language", "ads", "unsafe", "broken", "copied", "generated"}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("signal", CUTS)
def test_a_page_with_the_score_of_a_cut_is_flagged(lang: str, signal: str) -> None:
    group, cut = signal.split(".")[0], CUTS[signal][0]
    asked = expression("clean"), first_reason("clean")
    assert query(scored(lang, **{group: cut}), *asked) == [(False, signal)]
    assert query(scored(lang, **{group: cut - 1e-6}), *asked) == [(True, None)]


def test_clean_names_the_first_detector_and_is_null_elsewhere() -> None:
    asked = expression("clean"), first_reason("clean")
    assert query(scored("zh", generated=0.9, unsafe=0.9), *asked) == [(False, "unsafe.score")]
    assert query(scored("ko", ads=0.9), *asked) == [(None, None)]
    assert query(scored(None, ads=0.9), *asked) == [(None, None)]
    assert query(scored("en", "code", ads=0.9), *asked) == [(None, None)]


@pytest.mark.parametrize("key", PROSE)
def test_sound_prose_is_clean(key: str) -> None:
    lang = key.split("-")[0]
    columns = {"lang": pa.array([lang]), "kind": pa.array(["web"])}
    batch, scores = Texts(pa.array([PROSE[key]])), {}
    for name in CUTS:
        group = name.split(".")[0]
        scores[group] = pa.array(GROUPS[group].measure(batch, columns)["score"])[0].as_py()
    assert query(scored(lang, **scores), expression("clean")) == [(True,)]
