"""Makes text that came from outside safe to print on a terminal."""

# Control characters and direction overrides out of a document or a request must not reach a terminal.
_HARMLESS = dict.fromkeys(
    [
        code
        for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
        if code != 0x0A
    ],
    "�",
)

# Letters of a line that says what is wrong.
MAX_LINE = 2000


def harmless(text: str) -> str:
    """`text` without control characters other than the newline."""
    return text.translate(_HARMLESS)


def one_line(text: str) -> str:
    """`text` on a single line that is safe to print; what cannot be seen of it is shown as “�”."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in line)


def short_line(text: str) -> str:
    """`text` as `one_line`, with its middle left out where it is longer than messages of ours are."""
    line = one_line(text)
    if len(line) <= MAX_LINE:  # what is longer quotes what it refuses
        return line
    return f"{line[: MAX_LINE // 2]} … {line[-MAX_LINE // 2 :]}"
