"""Own, made-up cases: no real person's data stands here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters import privacy
from filters.edits import applied, edits_of, fault, merged
from filters.private_homes import rooms
from filters.private_marks import (
    AT,
    COLONS,
    DOTTED,
    NUMBER,
    PASSPORT,
    ROOM,
    STREET,
    TOKEN,
    WIDE,
    marks,
)
from filters.private_tokens import TOKENS
from filters.private_widths import narrowed
from filters.segments import Texts

KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEowIBAAKCAQEA7b\n" * 5
    + "-----END RSA PRIVATE KEY-----"
)
HEX = "0123456789abcdef0123456789abcdef012345"
PRIVATE = {
    "email": ("zhang.san+news@mail.com.cn", "A_B@SUB.HOST.ORG", "x@y.museum"),
    "phone": (
        *("13912345670", "139-1234-5670", "139 1234 5670", "+8613912345670", "+86 139-1234-5670"),
        *(
            "010-62345678",
            "(0755)26789012",
            "（0571）87654321",
            "0571－87654321",
            "+86-10-62345678",
            "021 6234 5678",
            "0755-8888-6667",
            "(010) 6234 5678",
        ),
        *(
            "(212) 664-7665",
            "212-664-7665",
            "1-212-664-7665",
            "+1 650 253 0000",
            "+44 20 7946 0958",
            "１３９１２３４５６７０",
            "０１０－６２３４５６７８",
        ),
    ),
    "resident_id": (
        "11010519491231002X",
        "440524198001010013",
        "１１０１０５１９４９１２３１００２Ｘ",
    ),
    "bank_card": (
        "4012 8888 8888 1881",
        "6222021234567890128",
        "5105-1051-0510-5100",
        "６２２２０２１２３４５６７８９０１２８",
    ),
    "ipv4": ("61.135.169.121", "203.119.26.1"),
    "ipv6": ("2400:3200::1:9", "2606:4700:4700::6810:85e5"),
    "secret": (
        *("AKIAI44QH7DHBQ7XAMPL", "ghp_" + HEX[:36], "glpat-" + HEX[:20], "LTAI5tAbCdEfGhIjKlMn"),
        *(
            "xoxb-123456789012-abcdefABCDEF",
            "AIza" + HEX[:35],
            "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
        ),
        *("whsec_" + HEX[:32], "GOCSPX-" + HEX[:28], "dop_v1_" + HEX[:32] * 2),
        *("SG." + HEX[:22] + "." + HEX[:32] + HEX[:11], "dckr_pat_" + HEX[:27]),
        *("sk_live_" + HEX[:24], "shpat_" + HEX[:32]),
        *("gho_" + HEX[:36], "github_pat_" + HEX[:22] + "_" + HEX, "xapp-1-A0-" + HEX[:20]),
        *("sk-proj-" + HEX, "sk-svcacct-" + HEX, "sk-ant-api03-" + HEX, "rk_live_" + HEX[:24]),
        *("eyJhbGciOiJI." + "eyJzdWIiOiIxMjM." + "dozjgNryP4J3", "sk-" + HEX[:32], KEY),
    ),
    "home_address": (
        "杭州市西湖区文一路12号3幢502室",
        "中关村南大街5号院3号楼1单元502室",
        "张江路100弄5号201室",
        *(
            "221 Baker Street, Springfield, IL 62704",
            "12 N. Oak Ave Apt 4B, New York, NY 10001-1234",
        ),
        *("45 West 23rd St.\nNew York, NY 10010", "1600 Elm Ave NW, Washington DC 20500"),
        *("221B Baker Street, London NW1 6XE", "Flat 3, 10 High St, Oxford, Oxfordshire OX1 4AJ"),
        "7 Mill Lane\r\nYork\r\nYO1 7AB",
    ),
}
CASES = [(kind, text) for kind, texts in PRIVATE.items() for text in texts]
PUBLIC = (
    "版本1.2.3.4发布", "v61.2.3.4", "Chrome/96.0.46.110", "2.6.32.71", "section 4.1.2.3",
    "1.3.6.1.4.1.311", "192.168.1.10", "10.0.0.1", "127.0.0.1", "192.0.2.7", "198.51.100.2",
    "256.1.1.1", "061.135.169.121", "8.8.8.8", "2001:db8::1", "fe80::1", "12:30:45",
    "2020:12:31", "std::vector", "2023:abcd", "a@example.com", "b@mail.example",
    "git@github.com:a/b.git", "icon@2x.png", "lodash@4.17.21", "@someone",
    "ISBN 978-7-111-40701-0", "1234567890123", "2020-12-31 13:45:00", "3f13912345670ab",
    "0.13912345670", "id=13912345670", "1391234567", "139123456701", "13900000000", "555-0123",
    "212-555-0123", "110105194912310021", "999999194912310021", "110105491231002",
    "4012888888881882", "4012888888881881", "E12345678",
    "sk-button-primary-large-rounded-corners", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJI",
    "-----BEGIN PUBLIC KEY-----\nMIIB", "d41d8cd98f00b204e9800998ecf8427e", "12345678",
    "123-45-6789", "中山路12号", "会议室3室", "第5层502室",
    "https://user:password@host.org/", "1,234,567.89", "010-2020", "021 1234 5678",
    "0755-8888-66", "张江路100弄", "张江路100弄5号", "001 2345 6789", "0571-876 5432",
    "2021 6234 5678", "１２３４５６７８９０１２３", "１３９１２３４５６７",
    "１１０１０５１９４９１２３１００２１", "221 Baker Street", "221 Baker Street, Springfield, IL",
    "Springfield, IL 62704", "221 baker street, springfield, il 62704", "NW1 6XE",
    "flight UA 12345", "51 Oak Street, Fifth Floor, Boston, MA 02110-1301",
    "59 Oak Place, Suite 330, Boston, MA 02111",
    "Oak Press, Inc., 675 Oak Ave, Boston, MA 02139", "12 Oak Street, Boston, XX 02139",
    "P.O. Box 12, Boston, MA 02139", "12 Apostles and St, Boston, MA 02139",
    "221B Baker Street, London NW1 6CI",
)  # fmt: skip


def found(text: str) -> list[tuple[str, str]]:
    """Kind and text of every edit."""
    texts = Texts(pa.array([text]))
    edits = privacy.find(texts, {})
    assert fault(texts, edits) == ""
    data = text.encode()
    ranges = zip(edits.starts, edits.ends, edits.kinds.to_pylist(), strict=True)
    return [(kind, data[start:end].decode()) for start, end, kind in ranges]


@pytest.mark.parametrize(
    "around", [("", ""), ("联系", "谢谢"), ("call ", "."), ("：", "，"), ("<b>", "</b>")]
)
@pytest.mark.parametrize(("kind", "text"), CASES)
def test_what_is_private_is_found_beside_any_script(
    kind: str, text: str, around: tuple[str, str]
) -> None:
    before, after = around
    if kind == "home_address" and before == "联系":
        before = "在 "
    assert found(before + text + after) == [(kind, text)]


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_not_private_stays(text: str) -> None:
    assert found(text) == []
    assert found(f"见{text}。") == []
    assert found(f"see {text} here") == []


def test_words_beside_decide_where_a_number_alone_does_not() -> None:
    assert found("身份证号码：110105491231002") == [("resident_id", "110105491231002")]
    assert found("card number 4012888888881881") == [("bank_card", "4012888888881881")]
    assert found("护照号E12345678") == [("passport", "E12345678")]
    assert found("Passport No. 123456789, seat 12") == [("passport", "123456789")]
    assert found("ping 1.2.3.4") == [("ipv4", "1.2.3.4")]
    assert found("http://1.2.3.4:8080/") == [("ipv4", "1.2.3.4")]
    assert found("mysql://root:hunter2@db.host.com/x") == [("password", "hunter2")]
    key = "aB3/" * 21 + "aB=="
    azure = f"DefaultEndpointsProtocol=https;AccountName=store;AccountKey={key};EndpointSuffix=x"
    assert found(azure) == [("secret", key)]
    key = "aB3/" * 10 + "aB3="
    assert found(f"Endpoint=sb://x/;SharedAccessKey={key}") == [("secret", key)]
    emulator = (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    )
    assert found(f"AccountKey={emulator}") == found("AccountKey=<your key>") == []
    secret = "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789/+ab"
    assert found(f'aws_secret_access_key = "{secret}"') == [("secret", secret)]


def test_heads_of_sections_are_no_machines() -> None:  # 64 of 70 in PostgreSQL's manual
    text = (
        "24.2.2.1. Standard\n  36.7.2.1.\u00a0The area\nIt ran on 61.135.169.121. Then it broke.\n"
    )
    assert found(text) == [("ipv4", "61.135.169.121")]
    assert found("61.135.169.121\n61.135.169.122 is down.") == [
        ("ipv4", "61.135.169.121"),
        ("ipv4", "61.135.169.122"),
    ]


def test_replacements_depend_on_the_kind_alone() -> None:
    texts = pa.array(["13912345670或010-62345678", "a@b.cn; c@d.org"])
    after = applied(texts, privacy.find(Texts(texts), {})).to_pylist()
    assert after == ["[PHONE]或[PHONE]", "[EMAIL]; [EMAIL]"]
    assert all(
        found(f"请{text}看，see {text} {text}") == [] for text in privacy.REPLACEMENTS.values()
    )


PIECES = st.sampled_from(
    [text for _, text in CASES]
    + list(PUBLIC)
    + [
        "护照",
        "passport ",
        "身份证",
        "银行卡",
        "card ",
        "ip ",
        "://",
        ":",
        "@",
        ".",
        "-",
        " ",
        "\n",
        "，",
        "室",
    ]
    + [" Oak ", "12", "St", ", ", "Boston", " MA ", "02139", "W1", " 6XE", "Inc. "]
    + ["中", "a", "é", "😀", "7", "+", "(", "[EMAIL]", "86", "x", "\r\n"]
)
TEXTS = st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=3)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_second_run_finds_nothing(texts: list[str]) -> None:
    array = pa.array(texts, pa.string())
    edits = privacy.find(Texts(array), {})
    assert fault(Texts(array), edits) == ""
    assert len(privacy.find(Texts(applied(array, edits)), {})) == 0


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_text_is_edited_alike_in_any_batch(texts: list[str]) -> None:
    together = applied(pa.array(texts), privacy.find(Texts(pa.array(texts)), {})).to_pylist()
    for text, after in zip(texts, together, strict=True):
        alone = pa.array([text])
        assert applied(alone, privacy.find(Texts(alone), {})).to_pylist() == [after]


_CLUSTER = re.compile(rb"\d+(?:(?:[ .()-]|\xef\xbc[\x88\x89\x8d]|\xe2\x80[\x93\x94])+\d+)*")
_WIDE_DIGIT = rb"\xef\xbc[\x90-\x99]"
_WIDE_CLUSTER = re.compile(
    _WIDE_DIGIT
    + rb"(?:(?:[ .()-]|\xef\xbc[\x88\x89\x8d]|\xe2\x80[\x93\x94])?"
    + _WIDE_DIGIT
    + rb")*"
)
_GROUP = re.compile(rb"(?:^|[^A-Za-z0-9:])[23][0-9A-Fa-f]{3}$")
_PASSPORT_WORD = re.compile("passport|护照|護照".encode(), re.I)


def every_mark(text: bytes) -> Iterator[tuple[int, int, int]]:
    """All places at which a rule could look, without a first look at what stands there."""
    for match in _CLUSTER.finditer(text):
        begin, end = match.span()
        what = NUMBER | DOTTED | ROOM | STREET
        if _PASSPORT_WORD.search(text, max(0, begin - 40), begin):
            what |= PASSPORT
        yield begin, end, what
    for match in _WIDE_CLUSTER.finditer(text):
        yield *match.span(), WIDE
    for at, byte in enumerate(text):
        if byte == ord("@"):
            yield at, at + 1, AT
        if byte == ord(":") and _GROUP.search(text, max(0, at - 5), at):
            yield at - 4, at + 1, COLONS
        if any(text[at:].lower().startswith(token.encode().lower()) for token in TOKENS):
            yield at, at + 1, TOKEN


def spans_at(
    rule: privacy.Rule, text: bytes, begin: int, end: int, what: int
) -> Iterator[tuple[int, int]]:
    if what != WIDE:
        yield from rule(text, begin, end)
        return
    window, here, there, places = narrowed(text, begin, end)
    for start, stop in rule(window, here, there):
        yield places[start], places[stop]


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_the_first_look_misses_nothing_that_a_rule_would_find(texts: list[str]) -> None:
    expected = []
    for kind, (at, rule) in privacy.RULES.items():
        spans = [
            (row, *span, kind, privacy.REPLACEMENTS[kind])
            for row, text in enumerate(texts)
            for begin, end, what in every_mark(text.encode())
            if what & at or (what == WIDE and at == NUMBER)
            for span in spans_at(rule, text.encode(), begin, end, what)
        ]
        expected.append(edits_of(set(spans)))
    edits = privacy._found(Texts(pa.array(texts, pa.string())))
    slow = merged(expected)
    assert edits.rows.tolist() == slow.rows.tolist()
    assert edits.starts.tolist() == slow.starts.tolist()
    assert edits.ends.tolist() == slow.ends.tolist()
    assert edits.kinds.to_pylist() == slow.kinds.to_pylist()


@pytest.mark.parametrize(
    "unit",
    [
        *("1", "@", "a@", "1.", "13912345670 ", "-----BEGIN PRIVATE KEY-----", "eyJ.", "2400:"),
        *("://", "1 ", "(1", "室", "1室", "x", "a:b@", "ab.", "护照", "+1-"),
        *(
            "12号3楼502室",
            "路1座1室",
            "eyJ",
            "eyJ-",
            "eyJ-eyJ12345.",
            "sk-",
            "sk-1",
            "ghp_",
            "9 ",
            "１",
            "１ ",
            "１３９１２３４５６７０",
            *("1 Oak St, A, IL 62704 ", "1 Aa Aa Aa Aa St, Aa Aa, IL 62704", "1 Aa ", "W1 6XE "),
        ),
    ],
)
def test_long_texts_of_one_thing_take_linear_time(unit: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        texts = Texts(pa.array([unit * (size // len(unit.encode()))]))
        tries = []
        for _ in range(2):  # a collection of garbage may meet one
            begin = time.process_time()
            privacy.find(texts, {})
            tries.append(time.process_time() - begin)
        seconds.append(min(tries))
    assert seconds[1] < 24 * seconds[0] + 0.5


_HOME_FORWARDS = re.compile(
    r"[\u4e00-\u9fffA-Za-z0-9]{2,30}?(?:路|街|道|巷|弄|村|里|园|苑|城|庭|区|號|号)"
    r"[\u4e00-\u9fffA-Za-z0-9（）()—-]{0,24}?"
    r"(?:\d{1,3}|[A-Z])(?:号楼|號樓|栋|棟|幢|座|单元|單元)[\u4e00-\u9fff0-9（）()—-]{0,12}?"
    r"\d{1,4}[室户戶]$"
)
STREETS = st.lists(
    st.sampled_from(["中", "山", "路", "街", "号", "号楼", "幢", "座", "单元", "1", "23", "A", "b"])
    | st.sampled_from(["-", "（", "，", "\n", "９", "x" * 9, "天" * 12]),
    max_size=40,
)


@given(STREETS, st.sampled_from(["1室", "502户", "12345戶"]))
def test_a_home_is_read_from_its_end_as_from_its_beginning(street: list[str], room: str) -> None:
    text = "".join([*street, room])
    end = len(text.encode()) - 3
    begin = len(text[:-1].rstrip("0123456789").encode())
    last = text.encode()[max(0, begin - 150) :].decode(errors="ignore")
    match = _HOME_FORWARDS.search(re.split(r"[，\n]", last)[-1])
    expected = [(end + 3 - len(match[0].encode()), end + 3)] if match else []
    assert list(rooms(text.encode(), begin, end)) == expected


@pytest.mark.parametrize(
    ("unit", "num_marks"),
    [
        ("12室", 0),
        ("中山路12号502室", 0),
        ("eyJ-", 0),
        ("eyJ.", 0),
        ("eyJ-" * 9 + "." + "a" * 9, 0),
        ("sk-", 0),
    ],
)
def test_what_no_rule_can_find_is_not_marked(unit: str, num_marks: int) -> None:
    texts = Texts(pa.array([unit * 1_000]))
    assert len(marks(texts.data, texts.offsets)) == num_marks


def test_of_one_part_of_a_web_token_one_beginning_is_marked() -> None:
    texts = Texts(pa.array([("eyJ-" * 900 + ".eyJ12345678.12345678 ") * 3]))
    assert len(marks(texts.data, texts.offsets)) == 3
    assert len(privacy.find(texts, {})) == 3
