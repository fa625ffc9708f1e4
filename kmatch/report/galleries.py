"""Galleries: queries and their first results, hits and misses marked."""

import base64
import logging
from collections.abc import Callable, Sequence
from html import escape

import numpy as np
import tensorflow as tf

from kmatch.data.images import image_bytes, image_name
from kmatch.retrieval.examples import KINDS, Example

_log = logging.getLogger("kmatch")

THUMBNAIL = 200
PLACES = {
    "i2t": "Its first caption comes at rank {rank} of {size}",
    "t2i": "Its first image comes at rank {rank} of {size}",
}


# Stands for an image that can no longer be read.
UNREADABLE = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
    "viewBox='0 0 2 2'%3E%3Crect width='2' height='2' fill='%23888'/%3E"
    "%3C/svg%3E"
)


def thumbnail(images: Sequence, index: int) -> str:
    """Returns an image as a data address, small enough for a page.

    One that cannot be read, though it could when it was encoded, is named and
    shown as a grey square.
    """
    try:
        return _thumbnail(image_bytes(images[index]))
    except tf.errors.OpError:
        _log.warning(
            "The page shows a grey square for %s, which cannot be read.",
            image_name(images, index),
        )
        return UNREADABLE


def _thumbnail(file):
    decoded = tf.io.decode_image(file, channels=3, expand_animations=False)
    height, width = decoded.shape[:2]
    scale = min(1.0, THUMBNAIL / max(height, width))
    size = [max(1, round(height * scale)), max(1, round(width * scale))]
    small = tf.image.resize(decoded, size, antialias=True)
    small = tf.cast(tf.clip_by_value(tf.round(small), 0, 255), tf.uint8)
    data = tf.io.encode_jpeg(small, quality=80, optimize_size=True).numpy()
    return "data:image/jpeg;base64," + base64.b64encode(data).decode()


def gallery(
    shown: Sequence[Example],
    direction: str,
    size: int,
    image: Callable[[int], str],
    caption: Callable[[int], str],
) -> str:
    """Draws a direction's examples, failures first.

    Args:
        shown: The examples.
        direction: `"i2t"` or `"t2i"`.
        size: Number of items in the gallery that was searched.
        image: Gives the address of an image by its index.
        caption: Gives a caption by its index.
    """
    parts = []
    for kind, title in KINDS.items():
        own = [example for example in shown if example.kind == kind]
        if own:
            parts.append(f"<h4>{title}</h4>")
            parts.append('<div class="examples">')
            parts += [
                _example(each, direction, size, image, caption) for each in own
            ]
            parts.append("</div>")
    return "\n".join(parts)


def _example(example, direction, size, image, caption):
    place = PLACES[direction].format(rank=example.rank, size=size)
    missed = not example.hits.any()
    if direction == "i2t":
        query = (
            f'<img class="query" src="{image(example.query)}" '
            f'alt="Image {example.query}" loading="lazy">'
        )
        items = [
            f'<li class="{_mark(hit)}"><span>{escape(caption(i))}</span>'
            f"<small>{score:.2f}</small></li>"
            for i, hit, score in _results(example)
        ]
        body = f'{query}<ol class="captions">{"".join(items)}</ol>'
        if missed:
            place += f": “{escape(caption(example.own))}”"
    else:
        query = f"<blockquote>{escape(caption(example.query))}</blockquote>"
        items = [
            f'<li class="{_mark(hit)}"><img src="{image(i)}" '
            f'alt="Image {i}, a {_mark(hit)}" loading="lazy">'
            f"<small>{score:.2f}</small></li>"
            for i, hit, score in _results(example)
        ]
        body = f'{query}<ol class="images">{"".join(items)}</ol>'
        if missed:
            place = (
                f'<img src="{image(example.own)}" alt="Image {example.own}" '
                f'loading="lazy"><span>{place}</span>'
            )
    return (
        f'<article class="{direction}">{body}'
        f'<p class="place">{place}</p></article>'
    )


def _results(example):
    return zip(example.results, example.hits, example.scores)


def _mark(hit: np.bool_) -> str:
    return "hit" if hit else "miss"
