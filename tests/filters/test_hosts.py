"""What a host says, and the pages that the preset `hacked` flags there."""

from __future__ import annotations

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from filters.hosts import COLUMNS, measure, randomness
from filters.presets import CUTS, expression, first_reason, needs
from filters.presets.hacked import HACKED, RANDOM_FROM
from filters.segments import Texts
from filters.signals import GROUPS


def rows(*domains: str | None) -> list[dict[str, object]]:
    texts = Texts(pa.array([""] * len(domains), pa.string()))
    return pa.table(dict(measure(texts, {"domain": pa.array(domains, pa.string())}))).to_pylist()


@pytest.mark.parametrize(
    ("domain", "institution"),
    [
        ("www.pku.edu.cn", True),
        ("a.b.gov.cn", True),
        ("WWW.GOV.CN.", True),
        ("x.ac.uk", True),
        ("x.mit.edu", True),
        ("x.edu.hk", True),
        ("x.gov.tw", True),
        ("x.org.cn", True),
        ("x.go.jp", True),
        ("x.gouv.fr", True),
        ("edu.com", False),
        ("edu.cn.example.com", False),
        ("myedu.cn", False),
        ("x.org", False),
        ("x.com.cn", False),
        ("x.ac", False),  # Ascension Island
        ("1.2.3.4", False),
        ("", False),
        (None, False),
    ],
)
def test_institutions_are_known_by_their_suffix(domain: str | None, institution: bool) -> None:
    assert [row["institution"] for row in rows(domain)] == [institution]


# Ordinary first labels, of every kind; at most this random.
ORDINARY = (
    "www m wap blog news shop bbs static img1 cdn2 api www2 2024 163 12306 1688 mail2 forum docs "
    "xinwen zhaosheng guangzhou zhongguo jiangsu beijing-daxue shuangyashan qiche zhuangxiu "
    "university library download wikipedia stackoverflow developers springboard windows12 "
    "xn--fiqs8s my-casino bestcasino"
).split()
RANDOM = "qxk7zv a8x3k 7fk2m9q x9d8f7g6 bwxkqzt vn3kx8w1p zqwxr img-k3x9vq7 h4g7t2b9".split()


@pytest.mark.parametrize("label", ORDINARY)
def test_words_names_numbers_and_pinyin_are_ordinary(label: str) -> None:
    assert randomness(label) < RANDOM_FROM


@pytest.mark.parametrize("label", RANDOM)
def test_digits_between_letters_and_runs_of_consonants_are_random(label: str) -> None:
    assert randomness(label) >= RANDOM_FROM


def test_the_most_random_label_is_the_evidence() -> None:
    found = rows("m.qxk7zv.example.com", "qxk7zv.com.cn", "www.xinwen.com", None, "qxk7zv")
    assert [(row["label"], row["random_label"]) for row in found] == [
        ("qxk7zv", 1.0),
        ("qxk7zv", 1.0),
        ("", 0.0),
        ("", 0.0),
        ("", 0.0),
    ]


def test_the_site_is_the_domain_that_was_registered() -> None:
    found = rows("a.b.pku.edu.cn", "x.y.com.cn", "me.github.io", "1.2.3.4", None)
    sites = ["pku.edu.cn", "y.com.cn", "me.github.io", "1.2.3.4", ""]
    assert [row["site"] for row in found] == sites


@given(st.text(max_size=300))
def test_every_address_has_a_value(domain: str) -> None:
    (row,) = rows(domain)
    assert list(row) == list(COLUMNS)
    assert isinstance(row["random_label"], float)
    assert 0 <= row["random_label"] <= 1
    assert bool(row["label"]) is (row["random_label"] > 0)


def test_no_host_is_too_long() -> None:
    assert rows("a." * 500_000 + "edu.cn", "x" * 1_000_000) == rows(None, None)


CASINO = (
    "学校概况 院系设置 招生就业 图书馆 校园新闻 友情链接。澳门百家乐真人赌场注册送彩金，六合彩开奖"
    "结果，老虎机在线投注，时时彩平台，立即注册，加微信客服，首存送彩金。"
)
CASINO_EN = (
    "Best online casino no deposit bonus free spins. Play poker online, sports betting, blackjack. "
    "Sign up now and claim your welcome bonus! Best online casino, casino bonus codes, free spins."
)
FORGER = (
    "代开发票，专业代开各类发票，办理毕业证，办证刻章，联系电话13800000000，加微信客服，价格优惠，"
    "诚信第一，货到付款，欢迎来电咨询。"
)
PORN = "成人电影 无码av 在线观看 国产自拍 色情视频 av女优 激情小说 黄色网站 免费看 成人电影"
RESEARCH = (
    "赌博障碍的研究综述。本文回顾了近二十年来关于赌博成瘾的实证研究。研究者发现，赌博行为与冲动性有关。"
    "问卷调查了三千名大学生，其中百分之二的学生有问题赌博的症状。网络赌博与传统赌场相比，更易使年轻人"
    "成瘾。文章讨论了认知行为疗法的疗效，并建议学校开展预防教育。"
)
RESEARCH_EN = (
    "Gambling disorder among students: a review. Researchers asked 3,000 students how often "
    "they gamble. Online casinos and sports betting make it easy to lose money. We discuss the "
    "role of slot machines, and what a university can do to prevent harm."
)
COURSE = (
    "继续教育学院考研辅导班火热招生中，名师授课，小班教学，限时优惠，报名立减500元，咨询热线："
    "010-62781234，名额有限，报满即止！"
)
AD = "shady advertisement on the host of an institution"
RANDOM_AD = "advertisement on a random host"
SEX = "pornography on the host of an institution or a random host"


@pytest.mark.parametrize(
    ("text", "domain", "reason"),
    [
        (CASINO, "jwc.x.edu.cn", AD),
        (CASINO_EN, "library.x.edu", AD),
        (FORGER, "www.x.gov.cn", AD),
        (PORN, "www.x.ac.cn", SEX),
        (PORN, "qxk7zv.example.com", SEX),
        (CASINO, "qxk7zv.example.com", RANDOM_AD),
        (COURSE, "qxk7zv.example.com", RANDOM_AD),
        (COURSE, "www.x.edu.cn", None),  # a university advertises its courses
        (RESEARCH, "www.x.edu.cn", None),
        (RESEARCH_EN, "www.x.ac.uk", None),
        (RESEARCH, "qxk7zv.example.com", None),
        (CASINO, "www.example.com", None),  # an advertisement, but not hacked
        (FORGER, "12306.cn", None),
        (PORN, "blog.example.com", None),
        (CASINO, None, None),
        ("天气很好。", "qxk7zv.edu.cn", None),
    ],
)
def test_an_address_and_a_page_together_are_flagged(
    text: str, domain: str | None, reason: str | None
) -> None:
    lang = "en" if text.isascii() else "zh"
    found = query(documents(text, domain, lang), expression("hacked"), first_reason("hacked"))
    assert found == (reason is None, reason)


def query(documents: pa.Table, *columns: str) -> tuple[object, ...] | None:
    with duckdb.connect() as connection:
        connection.register("documents", documents)
        return connection.execute(f"select {', '.join(columns)} from documents").fetchone()


def documents(text: str, domain: str | None, lang: str, kind: str = "web") -> pa.Table:
    """A row as in the `documents` view, as far as the preset reads it."""
    columns = {"lang": pa.array([lang]), "domain": pa.array([domain], pa.string())}
    batch = Texts(pa.array([text], pa.large_string()))
    structs = {}
    for group in sorted(needs("hacked") - {"language"}):
        found = GROUPS[group].measure(batch, columns)
        structs[group] = pa.table({n: pa.array(c) for n, c in found.items()}).to_struct_array()
    return pa.table({"lang": [lang], "lang_variant": [""], "kind": [kind]} | structs)


def test_languages_without_cuts_and_code_are_null() -> None:
    assert needs("hacked") == {"language", "ads", "unsafe", "hosts"}
    for lang, kind in (("ko", "web"), ("zh", "code")):
        assert query(documents(CASINO, "x.edu.cn", lang, kind), expression("hacked")) == (None,)


def test_no_cut_is_below_that_of_clean() -> None:
    cuts = {"unsafe.pornography": CUTS["unsafe.score"][0], **{n: c for n, (c, _) in CUTS.items()}}
    for rule in HACKED:
        assert all((bound.maximum or 0) >= cuts[rule.signal] for bound in rule.bounds.values())
