import re
import zlib
from collections import Counter, defaultdict

import numpy as np
import pytest

from kmatch.data import shapes as module

SIZES, COLOURS, SHAPES, SHADES, TEXTURES, WHERE, STANDS = (
    {word: key for key, words in table.items() for word in words}
    for table in (
        module.SIZES,
        module.COLOURS,
        module.SHAPES,
        module.SHADES,
        module.TEXTURES,
        module.WHERE,
        {"is": module.STANDS},
    )
)


def one_of(table):
    return "|".join(sorted(table, key=len, reverse=True))


THING = re.compile(
    f"(?:a|the) ({one_of(SIZES)}) ({one_of(COLOURS)}) ({one_of(SHAPES)})"
)
GROUND = re.compile(f"({one_of(SHADES)}) ({one_of(TEXTURES)})")
# After the things are replaced by T, the ground by G, and what says where by W:
# for each W, the thing that is there and the thing it is seen from, by order of
# appearance.
READINGS = {
    "T W and T W T on G": [(0, 2), (1, 2)],
    "on G T is W T and W T": [(0, 1), (0, 2)],
    "W T W T is T on G": [(2, 0), (0, 1)],
    "G, T, T W it and T W it": [(1, 0), (2, 0)],
    "T on G, W it T, W it T": [(1, 0), (2, 0)],
}


def read(caption):
    """What a caption says: its ground, and where its things are."""
    things = [
        module.Thing(SIZES[size], COLOURS[colour], SHAPES[shape])
        for size, colour, shape in THING.findall(caption)
    ]
    [(shade, texture)] = GROUND.findall(caption)
    ground = module.Ground(SHADES[shade], TEXTURES[texture])
    skeleton = GROUND.sub("G", THING.sub("T", caption))
    places = [WHERE[words] for words in re.findall(one_of(WHERE), skeleton)]
    skeleton = re.sub(one_of(WHERE), "W", skeleton)
    skeleton = re.sub(rf"\b({one_of(STANDS)})\b", "is", skeleton)
    return ground, facts(
        (things[there], place, things[here])
        for place, (there, here) in zip(places, READINGS[skeleton], strict=True)
    )


def facts(triples):
    """Adds to every "a left of b" that b is right of a."""
    return Counter(
        fact
        for a, (right, down), b in triples
        for fact in ((a, (right, down), b), (b, (-right, -down), a))
    )


def facts_of(scene):
    hub, *others = scene.things
    return scene.ground, facts(
        (a, place, hub) for a, place in zip(others, scene.places)
    )


@pytest.fixture(scope="module")
def drawn():
    """All scenes, in the order of their labels."""
    return module.sample_scenes()


def recall_at_1(image_keys, text_keys, text_labels):
    """Expected R@1 if the key is all one knows, both ways."""
    images, texts = Counter(image_keys), defaultdict(list)
    for key, label in zip(text_keys, text_labels):
        texts[key].append(label)
    image_to_text = np.mean(
        [
            texts[key].count(label) / max(len(texts[key]), 1)
            for label, key in enumerate(image_keys)
        ]
    )
    text_to_image = np.mean(
        [
            (image_keys[label] == key) / max(images[key], 1)
            for key, label in zip(text_keys, text_labels)
        ]
    )
    return image_to_text, text_to_image


def test_splits(shapes):
    for split, count, first in zip(shapes, (6000, 500, 500), (0, 6000, 6500)):
        assert split.images.shape == (count, 64, 64, 3)
        assert split.images.dtype == np.uint8
        assert split.labels.tolist() == list(range(first, first + count))
        assert Counter(split.caption_image.tolist()) == dict.fromkeys(
            range(count), 5
        )


def test_no_scene_is_there_twice(drawn):
    assert len(drawn) == 7000
    # Another ground alone does not make another scene.
    said = {frozenset(where.items()) for _, where in map(facts_of, drawn)}
    assert len(said) == len(drawn)


def test_captions_tell_exactly_their_scene(shapes, drawn):
    for split in shapes:
        for caption, label in zip(split.captions, split.text_labels):
            assert read(caption) == facts_of(drawn[label]), caption


def test_colours_alone_do_not_find_the_scene(shapes, drawn):
    scenes = [drawn[label] for label in shapes.test.labels]
    colours = [sorted(thing.colour for thing in s.things) for s in scenes]
    words = [
        sorted(COLOURS[colour] for _, colour, _ in THING.findall(caption))
        for caption in shapes.test.captions
    ]
    scores = recall_at_1(
        [*map(tuple, colours)],
        [*map(tuple, words)],
        shapes.test.caption_image.tolist(),
    )
    assert max(scores) < 0.2
    # It does know the colours: far better than one in five hundred.
    assert min(scores) > 0.05


def test_words_of_a_caption_are_few_and_its_order_changes(shapes):
    split = shapes.test
    words = {
        word for text in split.captions for word in re.findall(r"\w+", text)
    }
    assert 50 <= len(words) <= 80
    captions = np.array(split.captions).reshape(-1, 5)
    orders = [
        {tuple(SHAPES[s] for *_, s in THING.findall(text)) for text in texts}
        for texts in captions
    ]
    assert all(len(set(texts)) == 5 for texts in captions)
    shapes_differ = [len(set(next(iter(order)))) > 1 for order in orders]
    several = [len(order) > 1 for order in orders]
    assert np.mean(np.array(several)[shapes_differ]) > 0.9


def colour_map(image):
    """For each pixel the index of its colour; -1 is the background."""
    palette = np.array([*module.RGB.values()], float)
    distance = np.linalg.norm(image[..., None, :] - palette, axis=-1)
    return np.where(distance.min(-1) < 40, distance.argmin(-1), -1)


def test_images_show_what_captions_tell(shapes, drawn):
    colours = [*module.RGB]
    areas = defaultdict(list)
    checked = 0
    for image, label in zip(shapes.test.images[:300], shapes.test.labels):
        scene = drawn[label]
        if len({thing.colour for thing in scene.things}) < len(scene.things):
            continue
        shown = colour_map(image)
        centres = []
        for thing in scene.things:
            rows, columns = np.nonzero(shown == colours.index(thing.colour))
            areas[thing.size, thing.shape].append(len(rows))
            centres.append(np.array([np.median(columns), np.median(rows)]))
        for centre, place in zip(centres[1:], scene.places):
            assert (centre - centres[0]) @ place > 15
        checked += 1
    assert checked > 100
    for shape in module.SHAPES:
        assert max(areas["small", shape]) < min(areas["big", shape])


def test_a_scene_is_never_drawn_the_same(drawn):
    rng = np.random.default_rng(0)
    first, second = (module._draw(drawn[0], rng).astype(int) for _ in range(2))
    assert abs(first - second).mean() > 3


def test_the_seed_decides(monkeypatch):
    monkeypatch.setattr(
        module, "NUM_SCENES", {"train": 12, "val": 4, "test": 4}
    )
    first, again, other = (module.load(seed=seed) for seed in (1, 1, 2))
    for a, b, c in zip(first, again, other):
        np.testing.assert_array_equal(a.images, b.images)
        assert a.captions == b.captions
        assert a.captions != c.captions
    # Results that people report stay comparable as long as this holds.
    captions = "\n".join(first.train.captions)
    assert zlib.crc32(captions.encode()) == 446359812


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="drawn by code and takes no folder"):
        module.load(root=tmp_path)
