"""Spellings that the lexicons do not have to know: traditional characters, decimal commas, emoji, slips.

`visible`, `spoken`, `simplified` and `plain_figures` change how a thing is written, never what it says. `corrected`
mends a word only where it is nearly one of a short list of key words and begins with the same letter; each mending is
reported. It refuses to touch names, numbers and short words.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache

from ..patterns.gated import Gated

# Each traditional character before its simplified one.
_TRADITIONAL = (
    "輸输長长張张塊块機机臺台節节點点個个單单雙双兩两萬万億亿總总數数達达處处請请權权專专顯显內内遲迟時时間间響响應应併并並并發发線线優优預预價价費费連连續续須须過过與与後后從从當当這这讓让運运開开關关無无為为設设標标準准僅仅動动"
    "複复製制詞词網网頻频寬宽帶带對对於于將将們们還还進进來来問问題题覆复約约產产據据庫库檔档術术軟软體体實实際际現现規规劃划負负載载擁拥較较輕轻穩稳減减儘尽盡尽幾几選选擇择條条級级類类稱称項项務务業业員员戶户話话語语譯译讀读寫写"
    "說说認认證证記记憶忆緩缓衝冲碼码參参層层構构組组態态換换轉转傳传遞递佈布區区質质結结給给統统計计訓训練练調调試试驗验壓压縮缩佔占滿满錢钱貴贵買买賣卖團团隊队學学師师謝谢煩烦幫帮樣样麼么嗎吗啟启閉闭強强擴扩導导執执腳脚環环維维"
    "護护齊齐廳厅場场邊边遠远離离讚赞歡欢爾尔爲为隻只裡里裏里麵面該该歲岁號号冊册寧宁異异種种歸归檢检測测叢丛僱雇範范佇伫鐘钟聯联興兴議议義义藥药聽听視视觀观親亲見见覺觉誤误課课論论詢询詳详誰谁訊讯許许訪访談谈講讲謹谨識识貨货責责"
    "貼贴資资賬账賴赖購购趕赶趨趋蹤踪車车軌轨輛辆輪轮辦办農农違违遺遗郵邮釋释鋪铺錄录鍵键鎖锁閱阅隨随險险雜杂雖虽電电靈灵靜静頁页順顺額额願愿飛飞養养館馆駐驻騰腾驅驱魚鱼鮮鲜龍龙尋寻屬属嚴严備备傾倾儲储債债側侧偵侦剛刚創创劇剧勞劳"
    "勢势勝胜匯汇協协卻却厭厌吳吴啓启囑嘱圖图圍围園园圓圆堅坚報报壞坏夠够夾夹奪夺奮奋婦妇孫孙審审寶宝屆届島岛帳帐幹干廠厂廣广廢废彈弹彙汇徑径徹彻恆恒慮虑慣惯憑凭戲戏戰战拋抛採采掃扫掛挂揀拣搖摇搶抢損损撥拨撐撑擊击擔担攜携敗败敘叙"
    "敵敌斷断暫暂曉晓會会東东棄弃極极樓楼樹树橋桥橫横欄栏殘残殺杀氣气決决沒没況况洩泄淨净淺浅溝沟滅灭滾滚漢汉漲涨潔洁潛潜濟济灣湾災灾熱热燈灯爭争牆墙狀状獎奖獨独獲获畢毕畫画疊叠療疗盤盘監监確确礎础禮礼稅税積积競竞筆笔築筑簡简籤签"
    "糧粮糾纠紀纪紅红純纯紙纸細细終终絕绝絡络綠绿綱纲綜综緊紧編编緣缘縣县績绩織织繪绘繫系繼继罰罚罷罢羅罗習习職职聞闻聲声聰聪脫脱腦脑膽胆臨临舉举舊旧艦舰莊庄華华葉叶著着蓋盖藍蓝藝艺蘇苏蘭兰虛虚衛卫裝装補补襲袭覽览觸触訂订託托診诊"
    "詐诈評评詩诗誠诚誌志諾诺謀谋譜谱豐丰貢贡財财貧贫販贩貸贷貿贸賓宾賞赏賽赛贊赞贏赢趙赵跡迹踐践輔辅輯辑轄辖遊游遷迁邏逻鄉乡鄰邻醫医釘钉針针鈕钮鉤钩銀银銷销鋒锋錯错鏈链鐵铁鑑鉴鑒鉴閃闪闊阔陣阵陰阴陳陈陸陆陽阳階阶隱隐難难雲云霧雾"
    "韓韩頂顶頓顿領领頭头顆颗顧顾風风餘余饋馈馬马驚惊髮发鬆松鬧闹麗丽黃黄齡龄傷伤倉仓劑剂歐欧滯滞畝亩碩硕籌筹蘋苹蟲虫衆众眾众訴诉贈赠躍跃週周闖闯鎮镇鋼钢韌韧龐庞僑侨凍冻劉刘勵励嘗尝塗涂妝妆嬰婴憂忧懸悬戀恋掙挣敎教晝昼檯台歷历濕湿"
    "濾滤煉炼燒烧牽牵獻献瑪玛瞭了紋纹緯纬脈脉臟脏蕭萧謎谜賦赋軍军鄭郑鈔钞鈴铃銘铭鍋锅鑽钻閒闲陝陕頸颈顏颜駕驾騎骑鳥鸟鹽盐"
)
_SIMPLIFIED = {ord(_TRADITIONAL[i]): _TRADITIONAL[i + 1] for i in range(0, len(_TRADITIONAL), 2)}
# Words that Taiwan and Hong Kong say in another way.
_TERMS = {
    "伺服器": "服务器", "使用者": "用户", "丛集": "集群", "显示卡": "显卡", "字元": "词元", "权杖": "token",
    "快取": "缓存", "记忆体": "内存",
}  # fmt: skip
_TERM = re.compile("|".join(_TERMS))
_DECIMAL_COMMA = Gated(
    r"(?<![\d.,A-Za-z])(\d{1,3}),(\d{1,2})"
    r"(?=\s?(?:s|secs?|seconds?|sekunden|ms|msec|秒|毫秒)(?![a-z]))|"
    r"(?<=\s)(\d{1,2}),(\d{1,2})(?=\s?(?:req(?:uest)?s?|rps|qps|queries|usd|eur|euros?|dollars?|[€$])(?![a-z]))"
)
_COUNTED = r"(?:(?:input|output|prompt)\s)?(?:tokens?|toks?|users?|requests?|words)(?![a-z/])"
_THOUSANDS_POINT = Gated(
    # "2.000 tokens", "2 000 tokens", "2'000"
    rf"(?<![\d.,A-Za-z])([1-9]\d{{0,2}})(?:[. ](\d{{3}})(?=\s?{_COUNTED})|['’](\d{{3}})(?![\d'’]))"
    r"|(?:(?<=: )|^)([1-9]\d{0,2}) (\d{3})(?=\s?$)",  # "hidden size: 7 168"
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(r'"([\w .\-/]{1,60})"')
_ABOUT = Gated(r"(?<=\d)[ \-]?ish(?![A-Za-z])")
_KEY_WORDS = (
    "latency", "throughput", "concurrent", "concurrency", "concurrently", "simultaneous", "simultaneously", "request",
    "requests", "input", "inputs", "output", "outputs", "prompt", "prompts", "token", "tokens", "optimize", "optimise",
    "optimized", "maximize", "maximise", "minimize", "minimise", "maximum", "minimum", "cheapest", "lowest", "highest",
    "fastest", "length", "interactive", "decode", "prefill", "weight", "weights", "objective", "priority", "context",
    "second", "seconds", "millisecond", "milliseconds", "parallel", "response", "responses", "activation",
    "activations", "precision", "disaggregated", "utilization", "utilisation", "completion", "deepseek", "mixtral",
    "mistral", "first",
)  # fmt: skip
# Families of models: a slip of one is mended only before a version or a size ("qwn3 30b", "gema 3 27b").
_FAMILIES = ("qwen", "gemma", "mixtral", "mistral", "deepseek", "minimax", "nemotron", "hunyuan", "granite")
_FAMILY = Gated(
    r"(?<![\w./\-])(?P<word>[A-Za-z]{3,10})(?=[\s\-_]?(?:v?\d(?:\.\d)?[\s\-_]{1,2}(?:[a-z]{2,8}[\s\-_])?)?\d{1,3}(?:x\d{1,2})?(?:\.\d)?b(?![a-z]))"
)
_ALIKE_FAMILY = 0.75
_LEAST_LETTERS = 5
_MOST_LETTERS = 16
# Alike enough for a letter that is lost, doubled, swapped with its neighbour or wrong in a word of six or more.
_ALIKE = 0.83
# Real words that are nearly a key word, as found in a million words of technical prose.
_REAL = frozenset((
    "activate", "activated", "activating", "answer", "compilation", "compilations", "competing", "competition",
    "complete", "completed", "completing", "completions", "concur", "concurs", "content", "contents", "contest",
    "contests", "decide", "decided", "decides", "deciding", "decoded", "decoder", "decodes", "highs", "latent",
    "interactivity", "latently", "lengthy", "lowers", "maxim", "maximal", "maximized", "maximised", "maximums", "minim",
    "minimal", "magistral", "minimized", "minimised", "ministral", "mistral", "mixtral", "objectives", "optimal",
    "optimism", "optimised", "optimizer", "optimiser", "optimizes", "parallels", "precise", "precisely", "priorities",
    "prior", "prefilled", "prefix", "prefixes", "prompted", "prompter", "promptly", "props", "reasons", "relies",
    "replies", "replied", "requested", "requester", "requires", "responded", "responds", "responsive", "scones",
    "secondary", "seconded", "sends", "slowest", "tokenise", "tokenize", "throughout", "weighed", "weighs",
    "weighted", "weighty",
))  # fmt: skip
_WORD = Gated(rf"(?<![\w./\-])[A-Za-z]{{{_LEAST_LETTERS},{_MOST_LETTERS}}}(?![\w/]|[.\-]\w)", flags=0)
# Everything of Unicode's category Cf (zero width, bidi, soft hyphen, tags), variation selectors, the grapheme joiner,
# blank Hangul fillers, the keycap around a digit, colours of a terminal, and control characters but line ends and tabs.
_INVISIBLE = Gated(
    "\x1b\\[[0-9;]{0,20}[A-Za-z]|"
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e0-\u20e4\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]",
    flags=0,
)
# Arrows and pointing hands to the right, and the longer ones of ASCII ("->" and "=>" stay: the latter may be "≥").
_ARROW = Gated(
    "[→⇒⇨⇾⇢↦↠⇉⇛⟶⟹⟼➔➙➛➜➝➞➟➠➡➢➣➤➥➦➧➨➩➪➫➬➭➮➯➱➲➳➵➸➺➻➼➽➾▶►▸▹▻⏩⏭⭢⮕\U0001f449\U0001f846\U0001f852\U0001f862\U0001f872\U0001f882"
    "\U0001f892]|(?<![-<])-{2,4}>|(?<![=<>])={2,4}>|(?<=[\\dkK\\s])~>",
    flags=0,
)
_EMOJI = (
    "[\u2600-\u2712\u2717-\u2767\u27c0\u2b12-\u2b2f\u2b50-\u2b5a\U0001f000-\U0001f800\U0001f8b0-\U0001faff■□▪▫●○◆◇★☆]"
)
_EMOJI_OF_NUMBER = re.compile(rf"(?<=\d)\s?{_EMOJI}{{1,20}}\s?(?=[A-Za-z]|$)")
_EMOJIS = re.compile(rf"\s?{_EMOJI}(?:\s?{_EMOJI}){{0,40}}\s?")


def visible(text: str) -> str:
    """The text without characters that a reader cannot see, so that none of them splits a word or a number."""
    return _INVISIBLE.sub("", text)


def spoken(text: str) -> str:
    """The text with one kind of arrow and commas for emoji; an emoji between a number and its word is dropped."""
    return _EMOJIS.sub(", ", _EMOJI_OF_NUMBER.sub(" ", _ARROW.sub("→", text)))


def simplified(text: str) -> str:
    """Traditional characters, and the terms of Taiwan, as those of the mainland, which the lexicons have."""
    return _TERM.sub(lambda match: _TERMS[match.group()], text.translate(_SIMPLIFIED))


def plain_figures(text: str) -> str:
    """Plain figures and keys: "1,5 s" with a point, "2.000 tokens" without, "100ish" as 100, `"gpus": 4` unquoted."""
    text = _QUOTED.sub(r"\1", _ABOUT.sub("", text))
    text = _DECIMAL_COMMA.sub(lambda match: ".".join(filter(None, match.groups())), text)
    return _THOUSANDS_POINT.sub(lambda match: "".join(filter(None, match.groups())), text)


def corrected(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text with slips in key words mended, and the (written, read) pairs, each once."""
    mended: dict[str, str] = {}

    def mend(match: re.Match[str]) -> str:
        meant = _meant(match.group().lower())
        if meant is None:
            return match.group()
        mended[match.group()] = meant
        return meant

    def mend_family(match: re.Match[str]) -> str:
        word = match["word"].lower()
        near = [family for family in _FAMILIES if family[0] == word[0]]
        meant = (
            None if word in near or word in _REAL else next(iter(get_close_matches(word, near, 1, _ALIKE_FAMILY)), None)
        )
        if meant is None:
            return match.group()
        mended[match.group()] = meant
        return meant

    return _FAMILY.sub(mend_family, _WORD.sub(mend, text)), tuple(mended.items())


@lru_cache(maxsize=4096)
def _meant(word: str) -> str | None:
    """The key word that a word is nearly, or `None`."""
    if word in _KEY_WORDS or word in _REAL:
        return None
    alike = [key for key in _KEY_WORDS if key[0] == word[0] and abs(len(key) - len(word)) <= 2]
    if any(word.startswith(key) for key in alike):  # "prompting", "weightsum": a derivative, no slip
        return None
    swapped = [key for key in alike if sorted(key) == sorted(word)]  # "inptu"
    close = swapped or get_close_matches(word, alike, n=1, cutoff=_ALIKE)
    return close[0] if close else None
