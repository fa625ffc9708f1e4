"""Shapes: a data set of captioned scenes, drawn by code from a seed.

A scene is three things, each with a size, a colour and a shape, next to
one another on some ground. Its five captions, one from each pattern of a small
grammar, say what is there, where, and on what. No two scenes are the same.
"""

import itertools
from typing import NamedTuple

import numpy as np

from kmatch.data.captioned import CaptionedImages, Splits

NUM_SCENES = {"train": 6000, "val": 500, "test": 500}
IMAGE_SIZE = 64

# What a thing can be, and the words for it.
SIZES = {
    "big": ("big", "large", "huge"),
    "small": ("small", "little", "tiny"),
}
COLOURS = {
    "red": ("red", "crimson"),
    "yellow": ("yellow", "golden"),
    "green": ("green", "emerald"),
    "blue": ("blue", "azure"),
    "purple": ("purple", "violet"),
    "white": ("white",),
}
SHAPES = {
    "circle": ("circle", "disc", "ball"),
    "square": ("square", "box"),
    "triangle": ("triangle", "wedge"),
    "cross": ("cross", "plus"),
    "ring": ("ring", "hoop"),
}

# What they can stand on.
SHADES = {
    "dark": ("dark", "dim"),
    "light": ("light", "pale", "bright"),
}
TEXTURES = {
    "plain": ("paper", "cloth"),
    "striped": ("stripes", "bands"),
    "checked": ("checks", "tiles"),
    "speckled": ("grain", "gravel"),
}

WORDS = SIZES | COLOURS | SHAPES | SHADES | TEXTURES

# Where one thing is, seen from another, as (columns right, rows down).
LEFT, RIGHT, ABOVE, BELOW = (-1, 0), (1, 0), (0, -1), (0, 1)
WHERE = {
    LEFT: ("left of", "west of"),
    RIGHT: ("right of", "east of"),
    ABOVE: ("above", "over"),
    BELOW: ("below", "under", "beneath"),
}
STANDS = ("is", "lies", "sits", "stands")

# The other things stand next to the {hub}: {a_of} says where {a} is, seen from
# the hub, and {of_a} where the hub is, seen from {a}.
PATTERNS = (
    "a {a} {a_of} and a {b} {b_of} a {hub} on {ground}",
    "on {ground} the {hub} {stands} {of_a} a {a} and {of_b} a {b}",
    "{a_of} the {hub} {of_b} a {b} {stands} a {a} on {ground}",
    "{ground}, a {hub}, a {a} {a_of} it and a {b} {b_of} it",
    "a {hub} on {ground}, {a_of} it a {a}, {b_of} it a {b}",
)

# The hub stands in a corner. All scenes have as many things, and so captions of
# like length: batches by length do not set some scenes apart from others.
LAYOUTS = tuple(itertools.product((LEFT, RIGHT), (ABOVE, BELOW)))

# How it is drawn; lengths are in pixels.
RADIUS = {"big": (13.0, 14.5), "small": (7.0, 8.5)}
REACH = 18  # of the largest thing, whichever way it is turned
MARGIN, MIN_SPACING, JITTER = 15.5, 29.0, 1.0
SHADE_LEVELS = {"dark": 85, "light": 170}
RGB = {
    "red": (212, 32, 38),
    "yellow": (235, 215, 40),
    "green": (40, 160, 65),
    "blue": (40, 95, 220),
    "purple": (140, 50, 180),
    "white": (235, 235, 235),
}
Y, X = np.mgrid[:IMAGE_SIZE, :IMAGE_SIZE].astype("float32")[:, None]


class Thing(NamedTuple):
    """One object of a scene: a key of each of the tables above."""

    size: str
    colour: str
    shape: str


class Ground(NamedTuple):
    """What the things of a scene stand on: a key of each of its tables."""

    shade: str
    texture: str


class Scene(NamedTuple):
    """The first thing is the hub; the others stand where `places` says."""

    things: tuple[Thing, ...]
    places: tuple[tuple[int, int], ...]
    ground: Ground


def load(root: None = None, seed: int = 0) -> Splits:
    """Draws the data set `shapes`: 64-pixel scenes with five captions each.

    This takes a few seconds and no files. The same seed gives the same data
    set everywhere. Captions say left and right: do not flip the images.

    Args:
        root: Leave it out; it is for data sets that come in a folder.
        seed: Integer. Another seed draws another data set.

    Returns:
        `Splits` of 6000 training, 500 validation and 500 test scenes. No
        two of the 7000 have the same things in the same places.

    Example:

    >>> import kmatch
    >>> data = kmatch.data.load("shapes")
    >>> data.test
    CaptionedImages(images=500, captions=2500, labels=500)
    >>> data.test.images.shape
    (500, 64, 64, 3)
    """
    if root is not None:
        raise ValueError(
            "The data set 'shapes' is drawn by code and takes no folder. "
            f"Received: root={root!r}. Leave `root` out."
        )
    rng = np.random.default_rng([seed, 1])
    labelled = enumerate(sample_scenes(seed))
    return Splits(
        **{
            name: _split(itertools.islice(labelled, num_scenes), rng)
            for name, num_scenes in NUM_SCENES.items()
        }
    )


def sample_scenes(seed: int = 0) -> list[Scene]:
    """Samples the scenes of all splits, no two of them the same.

    Args:
        seed: Integer, as for `load`.

    Returns:
        A list of `Scene`: training, then validation, then test. A scene's
        position in it is its label.
    """
    rng = np.random.default_rng([seed, 0])
    tables = [tuple(table) for table in (SIZES, COLOURS, SHAPES)]
    grounds = [Ground(*keys) for keys in itertools.product(SHADES, TEXTURES)]
    scenes = {}
    while len(scenes) < sum(NUM_SCENES.values()):
        places = _pick(LAYOUTS, rng)
        things = tuple(
            Thing(*(_pick(table, rng) for table in tables))
            for _ in range(1 + len(places))
        )
        scene = Scene(things, places, _pick(grounds, rng))
        # Of two equal things nobody could say which one is where, and another
        # ground alone does not make another scene.
        if len(set(things)) == len(things):
            scenes.setdefault((things, places), scene)
    return list(scenes.values())


def _split(labelled_scenes, rng):
    labels, scenes = zip(*labelled_scenes)
    captions = [_describe(scene, rng) for scene in scenes]
    return CaptionedImages(
        images=np.array([_draw(scene, rng) for scene in scenes]),
        captions=list(itertools.chain(*captions)),
        caption_image=np.repeat(np.arange(len(scenes)), [*map(len, captions)]),
        labels=labels,
    )


def _describe(scene, rng):
    """Writes the captions of a scene, one from each pattern."""
    return [pattern.format(**_words(scene, rng)) for pattern in PATTERNS]


def _words(scene, rng):
    """Chooses words for every field that a pattern may have."""
    hub, *others = scene.things
    around = list(zip(others, scene.places))
    if rng.random() < 0.5:
        around.reverse()
    words = {
        "hub": _name(hub, rng),
        "stands": _pick(STANDS, rng),
        "ground": _name(scene.ground, rng),
    }
    for key, (thing, place) in zip("ab", around):
        words[key] = _name(thing, rng)
        words[f"{key}_of"] = _pick(WHERE[place], rng)
        words[f"of_{key}"] = _pick(WHERE[_opposite(place)], rng)
    return words


def _opposite(place):
    return -place[0], -place[1]


def _name(keys, rng):
    """Chooses a word for each key of a `Thing` or a `Ground`."""
    return " ".join(_pick(WORDS[key], rng) for key in keys)


def _draw(scene, rng):
    """Draws a scene, somewhat differently each time."""
    # As [3, 64, 64]: planes are faster to paint on.
    image = _background(scene.ground, rng)
    for thing, centre in zip(scene.things, _centres(scene, rng)):
        # Painting only the pixels that a thing may reach is much faster.
        left, top = (max(0, int(c) - REACH) for c in centre)
        near = np.s_[:, top : top + 2 * REACH, left : left + 2 * REACH]
        radius = np.float32(rng.uniform(*RADIUS[thing.size]))
        x, y = (X[near] - centre[0]) / radius, (Y[near] - centre[1]) / radius
        # An edge that is one pixel wide looks smooth.
        depth = _depth(thing.shape, *_turn(x, y, rng))
        cover = np.clip(depth * radius + 0.5, 0, 1)
        shade = np.float32(RGB[thing.colour] + rng.uniform(-20, 20, 3))
        image[near] += cover * (shade[:, None, None] - image[near])
    return image.astype("uint8").transpose(1, 2, 0)


def _centres(scene, rng):
    """Spreads the cells of a grid, so far that no two things touch."""
    cells = np.array([(0, 0), *scene.places])
    cells -= cells.min(axis=0)
    room = IMAGE_SIZE - 2 * MARGIN
    spacing = rng.uniform(MIN_SPACING, room, 2)
    corner = MARGIN + rng.random(2) * (room - cells.max(axis=0) * spacing)
    jitter = rng.uniform(-JITTER, JITTER, cells.shape)
    return np.float32(corner + cells * spacing + jitter)


def _turn(x, y, rng):
    """Turns by up to a few degrees."""
    # By the half-angle formulas: `sin` and `cos` differ between platforms.
    t = np.float32(rng.uniform(-0.1, 0.1))
    cos, sin = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return cos * x + sin * y, cos * y - sin * x


def _background(ground, rng):
    """Blends two greyish shades by a texture."""
    slopes = np.float32(rng.uniform(0.5, 1, 2) / IMAGE_SIZE)
    x, y = slopes[0] * X * _pick((-1, 1), rng), slopes[1] * Y
    match ground.texture:
        case "plain":
            texture = 0.5 * (x + y)
        case "striped":
            texture = 7 * (x + y) % 1 < 0.5
        case "checked":
            texture = (7 * x % 1 < 0.5) ^ (7 * y % 1 < 0.5)
        case "speckled":
            texture = rng.random((x + y).shape, dtype="float32")
    shade = SHADE_LEVELS[ground.shade] + rng.uniform(-12, 12, 3)
    contrast = rng.uniform(25, 40) * _pick((-1, 1), rng)
    contrast = contrast + rng.uniform(-8, 8, 3)
    shade, contrast = np.float32([shade, contrast])[..., None, None]
    return shade + (texture - np.float32(0.5)) * contrast


def _depth(shape, x, y):
    """How deep points lie inside a shape of radius 1; outside is below 0."""
    distance = np.sqrt(x * x + y * y)
    longer, shorter = np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
    match shape:
        case "circle":
            return 1 - distance
        case "ring":
            return np.minimum(1 - distance, distance - 0.55)
        case "square":
            return 0.85 - longer
        case "cross":
            return np.minimum(1 - longer, 0.33 - shorter)
        case "triangle":
            return np.minimum(0.75 - y, 0.48 + 0.45 * y - 0.89 * abs(x))


def _pick(options, rng):
    # Several times faster than `rng.choice`, for half a million calls.
    return options[int(rng.random() * len(options))]
