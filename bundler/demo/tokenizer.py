"""A tiny byte-level BPE vocabulary that two engines share, as Hugging Face and GGUF write it.

256 byte tokens in GPT-2's printable form (https://github.com/openai/gpt-2/blob/master/src/encoder.py),
merges that join the words of a short list letter by letter, and Qwen's special tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORDS = (
    " the of and to in a is that for it as was with be by on not he his but at are this have from or"
    " had an they which one you were all her she there would their we him been has when who will no"
    " more if out so up said what its about than into them can only other time new some could these"
    " two may first then do any like my now over such our man me even most made after also did many"
    " off before must well back through years where much your way down should because long each just"
    " state those people too mr how little good world make very year still see work life being under"
)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids, special ones last; merges in the order of their rank."""

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    def id(self, token: str) -> int:
        """Id of a token."""
        return self.tokens.index(token)

    def is_plain(self, number: int) -> bool:
        """Whether a token is ASCII text: an engine may send it alone without breaking UTF-8."""
        token = self.tokens[number]
        return token not in SPECIAL and token.replace("\u0120", " ").isascii()


def vocabulary() -> Vocabulary:
    """The vocabulary; always the same."""
    letters = [_printable()[byte] for byte in range(256)]
    tokens = dict.fromkeys(letters)
    merges: dict[tuple[str, str], None] = {}
    for word in _WORDS.split():
        joined = "\u0120"
        for letter in word:
            merges[joined, letter] = None
            joined += letter
            tokens[joined] = None
    return Vocabulary((*tokens, *SPECIAL), tuple(merges))


def tokenizer_json(words: Vocabulary) -> dict[str, Any]:
    """The content of tokenizer.json (format of the `tokenizers` library)."""
    byte_level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": words.id(token),
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in SPECIAL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", **byte_level},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", **byte_level},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {t: n for n, t in enumerate(words.tokens) if t not in SPECIAL},
            "merges": [list(pair) for pair in words.merges],
        },
    }


def tokenizer_config() -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def _printable() -> dict[int, str]:
    """Byte -> the character that stands for it: itself where it can be seen, else one from 256 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    table = {byte: chr(byte) for byte in seen}
    table.update({byte: chr(256 + number) for number, byte in enumerate(hidden)})
    return table
