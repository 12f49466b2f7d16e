"""Han that recognition (OCR) takes for others, where the word that comes of it is none: 己经, 今曰.

Made by benchmarks/confused_han.py from the frequent words of words/han_words.tsv; what people write
(在干, 人口) is not among them.
"""

from __future__ import annotations

# What is read -> characters after it, and before it, with which it makes no word: 己经, 早己.
CONFUSED: dict[str, tuple[str, str]] = {
    "人": ("库门", "侵卷投插收攻汇潜纳输钻"),
    "令": ("儿夜天年日晚", "古如迄"),
    "休": (
        "内制力型外弱形操格检温现积系育表裁质贴重长面验",
        "个主全具受团固大媒字实尸形总抗政整文晶机气水流液物立群肉肢解身躯车载遗集",
    ),
    "伺": ("不事人以况在处尝必故时用种等", "为任几奈如"),
    "侯": ("", "伺侍气火问"),
    "兔": ("于得疫费除", "不以任未罢避难"),
    "冶": ("国安愈所权理疗病", "分医同政救整法统自防顺"),
    "困": ("为子故此素而", "原基成起"),
    "士": ("匪地坑块城壤层著豆", "出尘本水泥砂粘红领黄"),
    "夭": (
        "上下亮体使地坛堂大天子山府性才文明星桥棚气池河津然王生皇监真空竺线花赋门顺鹅麻黑",
        "一三上两今仰先冬几十半后夏天奉当整明春昨每白祭秋聊航蓝这通那震露",
    ),
    "己": ("经", "不业早现而"),
    "干": (
        "万元克古尺张户斤是米里",
        "三乐五产介优位低几利勇善处富对小居属建归忠急易源溶用由等终至见趋鉴限陷难",
    ),
    "往": ("宅宿房院", "保围堵居抓抱拦按挡捉握止站记遮顶"),
    "折": ("", "分解"),
    "拔": ("打款", ""),
    "拨": ("剑牙", "提海选"),
    "既": ("位使便刻日时", "当立随"),
    "昌": ("充犯险", "假感"),
    "曰": (
        "元光军出前历后夜子常志报方月期本渐照用益程记趋",
        "一两中今假几前半即周平当往抗数早时明昔昨次每生节近连那",
    ),
    "末": ("免及尝必曾有来经能", "从尚并"),
    "析": ("合子射断磨腾", "奏挫曲转骨"),
    "玉": ("位八公国室宫家平府朝爷", "三亲君大天女帝楚法闯龙"),
    "睛": ("雯", ""),
    "祟": ("尚拜祯高", "推"),
    "货": ("", "信借"),
    "鸟": ("云桕鸦龟", ""),
}
PAIRS = frozenset(
    pair
    for read, (after, before) in CONFUSED.items()
    for pair in (*(read + char for char in after), *(char + read for char in before))
)
