"""The rules of filters/chrome.py: what they take, and lines of every genre that must stay."""

from __future__ import annotations

import pytest

from filters.chrome import ANYWHERE, FOOT_LINES, HEAD_LINES, ROW, RULES, folded, rules_of

# Sentences about what the rules are about, laws, poems, dialogue, code, tables. Our own, but for
# two lines of Du Mu and of Gray (public domain).
MUST_STAY = """
报刊转载其他媒体的作品，应当注明出处，并向著作权人支付报酬。
未经著作权人许可，复制、发行其作品的，应当承担赔偿责任。
第二十三条 互联网信息服务提供者应当在其网站主页标明备案编号。
（三）未取得许可证从事经营性互联网信息服务的；
他说这篇文章是从晚报转载的，可是没有写作者是谁。
停车坐爱枫林晚，霜叶红于二月花。
作者：杜牧
楼主说得对，我也觉得应该先修剪再施肥。
回复得很快，说明他一直在等这封信。
好的，我现在就展开地图看看上一页写的那个地址。
您好，请问这家酒店的评论怎么样？
评论区里有人问，这棵树是不是已经死了。
点赞不等于认同，分享也不等于支持。
首页的设计改了三次，最后还是用回了第一版。
我们登录服务器以后发现，注册表里少了一项。
下一章我们讲线性代数，上一章的习题请先做完。
相关系数为零不能说明两个变量相互独立。
编辑器里的代码和书上的不一样。
责任编辑是一个很细致的工作，她做了三十年。
来源不明的文件不要打开。
小说网上连载的版本和出版的版本不同。
手机用户请注意信号强度，山里常常没有网络。
浏览器会缓存这个文件，所以要清空缓存再试。
这个函数返回顶部元素，但不删除它。
关注的人越多，压力就越大。
扫码之前先看一看二维码是不是被人换过。
免责声明写得再长，也不能免除故意造成的损失。
The curfew tolls the knell of parting day,
We share the same opinion, and comment on it later.
She posted the letter on Monday and got a reply by Friday.
Read more books and you will write better ones.
The next page shows how the older model was replaced.
Home is where the heart is.
You may also like to know that the bridge was closed.
Copyright law protects the author for seventy years.
The cookie jar stood on the shelf next to the tea.
The site uses a cookie to store the session id, as section 4 of this document explains; a client
Contact us before the meeting if you have questions about the plan.
Related work falls into two groups, which we discuss in turn.
About 12 likes and 3 comments later, he deleted the photo.
Follow us, she said, and the children ran after her.
Previous work has shown that this is not the case.
Subscribe to the topic before you publish a message.
print(page.next())
| Home | 3 | 4 |
- [ ] reply to the editor
来源于生活的故事最打动人。
水的来源：一部分是雨水，一部分是地下水，还有一部分是融雪。
发布于去年的版本已经不再维护了。
他点赞了我的文章，我也关注了他。
收藏家把这幅画捐给了博物馆。
第 3 楼的住户请注意停水时间。
共 12 条规定，已有 3 条修改。
图 3 | 湖水的深度随季节变化，夏天最深
全部评论都要先经过审核。
学习(xuexi)和训练(xunlian)都要时间。
The report was shared with all of us.
He asked 12 questions and got 3 answers.
Edited by hand, the book took nine years.
By April 2019 all of them had left.
Active voice is preferred over passive voice.
Location matters more than size.
Views of the harbour, painted in 1840
Comments in the code explain the reason.
""".strip().split("\n")

EXAMPLES = [(name, line) for name, rule in RULES.items() for line in rule.examples]


def rule_of(line: str) -> str:
    """Of a line at the edge of a page."""
    return rules_of([line])[0]


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_a_rule_takes_its_examples(name: str, line: str) -> None:
    place = RULES[name].place
    body = ["正文。"] * 40
    assert rule_of(line) == ("" if place == ROW else name)
    assert rules_of([*body, line, *body])[40] == (name if place == ANYWHERE else "")
    beside = [*body, line, "展开全文", *body]
    assert rules_of(beside)[39:43] == ["", name, "read_more", ""]
    assert rules_of([*body, "展开全文", line, *body])[40:42] == ["read_more", name]


def test_a_row_is_taken_as_far_as_it_goes() -> None:
    body = ["正文。"] * 40
    row = ["喜欢", "收藏", "举报", "12 条评论", "Reply", "Share"]
    rules = ["label", "button", "button", "counts", "label", "label"]
    assert rules_of([*body, *row, *body])[40:46] == rules
    assert rules_of([*body, *row[:3], *body])[40:43] == ["", "", ""]
    assert rules_of([*body, "喜欢", "正文。", "12 条评论", *body])[40:43] == ["", "", "counts"]


@pytest.mark.parametrize("line", MUST_STAY)
def test_a_line_that_must_stay(line: str) -> None:
    assert rule_of(line) == ""
    assert rules_of(["展开全文", line, "展开全文"]) == ["read_more", "", "read_more"]


@pytest.mark.parametrize("name", RULES)
def test_a_sentence_before_or_after_an_example_saves_it(name: str) -> None:
    for line in RULES[name].examples:
        assert rule_of(f"他把门关上了。{line}") == ""
        assert rule_of(f"He closed the door and did not come back. {line}") == ""


def test_traditional_and_full_width_lines_are_the_same_lines() -> None:
    assert rule_of("轉載請註明出處") == "reprint"
    assert rule_of("Ｃｏｐｙｒｉｇｈｔ © ２０１９ 某某") == "copyright"
    assert folded("Ａ　轉B") == "a 转b"


def test_edges_are_few_lines() -> None:
    assert HEAD_LINES + FOOT_LINES == 20
