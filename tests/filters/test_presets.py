from __future__ import annotations

import itertools
from typing import Any, get_args

import duckdb
import pyarrow as pa
import pytest

from filters import language
from filters.gopher import STOP_WORDS
from filters.presets import NO_RULE, PRESETS, expression, needs, reasons
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline.settings import Kind

EN = (
    "The river rose in the night, and by morning the lower fields were under water. We moved our "
    "sheep up to a hill above the village. Children carried whatever they could hold with them. "
    "Nobody slept until noon, when rain stopped and somebody lit fires for those who had nothing "
    "dry left. It has been worse, said my grandfather, but he never told us which year he meant."
)
ZH = (
    "夜里河水涨了，到早上低处的田已经淹没在水中。我们把羊赶到山上，孩子们拿着能带走之物跟在后面。"
    "直到中午雨停，村里才有人生起火，给那些衣服湿透者取暖。爷爷说以前比这更糟，可是他没讲清楚究竟"
    "哪一年。傍晚太阳出来，大家回家收拾屋子，清点粮食，准备明天修堤坝。"
)
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
# For each preset and language: a signal, and a text in which its rule fires.
FIRES = {
    ("gopher", "en"): {
        "gopher.num_words": "The end of the story.",
        "gopher.mean_word_length": EN.replace(" ", "").replace(",", " of ").replace(".", " to "),
        "gopher.hash_ratio": EN + " #" * 20,
        "gopher.ellipsis_ratio": EN + " ..." * 20,
        "gopher.bullet_line_share": "- " + EN.replace(". ", ".\n- "),
        "gopher.ellipsis_line_share": EN.replace(". ", "...\n"),
        "gopher.alpha_word_share": EN + " 17" * 30,
        "gopher.num_stop_words": " ".join(
            word for word in EN.split() if word.lower() not in STOP_WORDS["en"]
        ),
        "gopher.dup_line_share": EN + "\nread\nmore" * 3,
        "gopher.dup_line_char_share": "\n".join([EN] * 2),
        "gopher.dup_paragraph_share": EN + "\n\nread more" * 3,
        "gopher.dup_paragraph_char_share": "\n\n".join([EN] * 2),
        "gopher.top_2_gram_char_share": EN + " read more" * 20,
        "gopher.top_3_gram_char_share": EN + " please read more" * 20,
        "gopher.top_4_gram_char_share": EN + " please read much more" * 20,
        **{f"gopher.dup_{n}_gram_char_share": f"{EN} {EN}" for n in range(5, 11)},
    },
    ("gopher", "zh"): {
        "gopher.num_words": "今天天气很好。",
        "gopher.hash_ratio": ZH + "#" * 20,
        "gopher.ellipsis_ratio": ZH.replace("，", "……").replace("。", "……"),
        "gopher.bullet_line_share": "●" + ZH.replace("。", "。\n●"),
        "gopher.ellipsis_line_share": ZH.replace("。", "。。。\n"),
        "gopher.alpha_word_share": ZH + " 17" * 60,
        "gopher.num_stop_words": "".join(
            c for c in ZH if c not in "的年在月是和日了有人中他后也由"
        ),
        "gopher.dup_line_share": ZH + "\n展开" * 3,
        "gopher.top_2_gram_char_share": ZH + "展开，" * 30,
        "gopher.top_3_gram_char_share": ZH + "看全文，" * 30,
        "gopher.top_4_gram_char_share": ZH + "展开全文，" * 30,
        "gopher.dup_10_gram_char_share": ZH + ZH,
    },
    ("c4", "en"): {
        "c4.sentences_after": EN.replace(". ", "\n"),
        "c4.num_lorem_ipsum": f"Lorem ipsum. {EN}",
        "c4.num_curly_brackets": f"{{ }} {EN}",
    },
    ("c4", "zh"): {
        "c4.sentences_after": ZH.replace("。", "……\n"),
        "c4.num_lorem_ipsum": f"lorem ipsum。{ZH}",
        "c4.num_curly_brackets": f"{{}}{ZH}",
    },
    ("fineweb", "en"): {
        "fineweb.punctuation_line_share": EN.replace(".", "\n"),
        "fineweb.short_line_share": "\n".join(f"Line {i}." for i in range(9)),
        "gopher.dup_line_char_share": f"{EN}\n{EN}",
        "fineweb.newline_ratio": EN.replace(" ", "\n"),
    },
    ("fineweb", "zh"): {
        "fineweb.punctuation_line_share": ZH.replace("。", "\n"),
        "gopher.dup_line_char_share": f"{ZH}\n{ZH}",
        "fineweb.newline_ratio": ZH.replace("，", "，\n\n\n"),
    },
}


def query(text: str, language: str | None, *columns: str, kind: str = "web") -> tuple[Any, ...]:
    texts, languages = Texts(pa.array([text])), pa.array([language or ""])
    groups = {}
    for name in PRESETS:
        measured = GROUPS[name].measure(texts, {"lang": languages})
        groups[name] = pa.table({n: pa.array(measured[n]) for n in measured}).to_struct_array()
    table = pa.table({**groups, "lang": pa.array([language], pa.string()), "kind": [kind]})
    with duckdb.connect() as connection:
        connection.register("documents", table)
        (row,) = connection.execute(f"select {', '.join(columns)} from documents").fetchall()
    return tuple(row)


@pytest.mark.parametrize(("language", "text"), [("en", EN), ("zh", ZH)])
def test_prose_passes_every_rule(language: str, text: str) -> None:
    for preset in PRESETS:
        assert query(text, language, expression(preset)) == (True,)
        failed = query(text, language, *(sql for _, sql in reasons(preset)))
        assert set(failed) <= {False, None}


def test_chinese_of_every_kind_passes_out_of_the_box() -> None:
    """data-juicer #509: its default setting filtered all Chinese text out."""
    assert KINDS_ZH.keys() == set(get_args(Kind))
    texts = pa.array(KINDS_ZH.values())
    languages = language.measure(Texts(texts), {})["lang"]
    assert pa.array(languages).to_pylist() == ["zh"] * len(texts)
    rules = [rule for preset in ("gopher", "c4") for rule in reasons(preset)]
    failed = {
        kind: [name for name, sql in rules if query(text, "zh", sql, kind=kind) == (True,)]
        for kind, text in KINDS_ZH.items()
    }
    expected: dict[str, list[str]] = {kind: [] for kind in KINDS_ZH}
    assert failed == expected
    assert [query(text, "zh", expression("gopher")) for text in KINDS_ZH.values()] == [(True,)] * 7


@pytest.mark.parametrize(
    ("preset", "language", "signal"),
    [(*key, signal) for key, texts in FIRES.items() for signal in texts],
)
def test_each_rule_can_fire(preset: str, language: str, signal: str) -> None:
    text = FIRES[preset, language][signal]
    passes, fails = query(text, language, expression(preset), dict(reasons(preset))[signal])
    assert (passes, fails) == (False, True)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rule_is_tested_or_explained(preset: str, language: str) -> None:
    with_bounds = {rule.signal for rule in PRESETS[preset] if language in rule.bounds}
    without = {rule.signal for rule in PRESETS[preset]} - with_bounds
    assert with_bounds == FIRES[preset, language].keys()
    assert without == {s for name, lang, s in NO_RULE if (name, lang) == (preset, language)}


@pytest.mark.parametrize("language", ["ko", "und", None])
def test_language_without_bounds_is_null(language: str | None) -> None:
    columns = [expression("gopher"), *(sql for _, sql in reasons("gopher"))]
    assert set(query(EN, language, *columns)) == {None}


def test_the_kind_of_a_source_chooses_its_rules() -> None:
    passes, sql = expression("gopher"), dict(reasons("gopher"))
    short = "The answer is that it was closed to the public, and that nobody have told us."
    assert query(short, "en", passes) == (False,)
    assert query(short, "en", passes, kind="qa") == (True,)
    assert query(short, "en", sql["gopher.num_words"], kind="forum") == (False,)
    assert query(short + " #" * 20, "en", passes, kind="dialogue") == (False,)
    assert query(EN, "en", passes, *sql.values(), kind="code") == (None,) * (1 + len(sql))


def test_bounds_are_inclusive() -> None:
    sql = dict(reasons("gopher"))
    words = " ".join(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50))
    assert query(words, "en", sql["gopher.num_words"]) == (False,)
    assert query(words.rsplit(" ", 1)[0], "en", sql["gopher.num_words"]) == (True,)
    assert query(words + " #" * 5, "en", sql["gopher.hash_ratio"]) == (False,)  # 5 / 50 == .1
    assert query(words + " #" * 6, "en", sql["gopher.hash_ratio"]) == (True,)


def test_needs_and_unknown_preset() -> None:
    assert needs("gopher") == {"language", "gopher"}
    assert needs("fineweb") == {"language", "gopher", "fineweb"}
    with pytest.raises(ValueError, match="no preset 'gofer'; presets: gopher"):
        expression("gofer")


def test_every_bound_reads_a_signal_and_names_its_source() -> None:
    for rule in itertools.chain(*PRESETS.values()):
        group, _, name = rule.signal.partition(".")
        assert name in GROUPS[group].columns
        assert [b.source for b in rule.bounds.values() if not b.source] == []
