"""Each epoch's order: which captions are shown with which image, and when."""

from typing import NamedTuple

import numpy as np

# Groups are sorted by caption length among this many batches at a time: few
# enough that batches stay well mixed, enough that little is padded.
_BUCKETED_BATCHES = 16


class Epoch(NamedTuple):
    """What is shown in one epoch, in order: groups of an image's captions."""

    image: np.ndarray  # [groups]
    captions: np.ndarray  # [groups, captions per image], -1 where fewer
    seed: np.ndarray  # [groups, 2], for augmentation


def plan_epoch(
    caption_image: np.ndarray,
    lengths: np.ndarray,
    batch_size: int,
    captions_per_image: int = 1,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
    labels: np.ndarray | None = None,
    samples_per_label: int | None = None,
) -> Epoch:
    """Deals every caption into exactly one group and orders the groups.

    The result depends on nothing but the arguments.

    Args:
        caption_image: For each caption, its image.
        lengths: For each caption, its number of tokens.
        batch_size: Groups per batch.
        captions_per_image: Captions per group; an image's last group may
            hold fewer.
        shuffle: Whether captions are dealt and groups ordered at random,
            with groups of like length in one batch.
        seed: Any whole number from 0 on.
        epoch: Number of the epoch.
        labels: For each image, its label.
        samples_per_label: With `shuffle`, how many groups of one label stand
            together, in place of those of like length.

    >>> import numpy as np
    >>> from kmatch.data.sampling import plan_epoch
    >>> epoch = plan_epoch(
    ...     caption_image=np.array([0, 0, 0, 1]), lengths=np.ones(4),
    ...     batch_size=2, captions_per_image=2,
    ... )
    >>> epoch.image, epoch.captions.tolist()
    (array([0, 0, 1]), [[0, 1], [2, -1], [3, -1]])
    """
    rng = np.random.default_rng([seed, epoch])
    count = len(caption_image)
    deal = rng.random(count) if shuffle else np.arange(count)
    order = np.lexsort([deal, caption_image])
    image = caption_image[order]
    first = np.searchsorted(image, image)  # where each image's captions begin
    place = (np.arange(count) - first) % captions_per_image
    group = np.cumsum(place == 0) - 1

    captions = np.full([group[-1] + 1, captions_per_image], -1)
    captions[group, place] = order
    image = image[place == 0]
    if shuffle:
        if samples_per_label is None:
            length = np.zeros(len(image), int)
            np.maximum.at(length, group, lengths[order])
            order = _shuffle_in_buckets(length, batch_size, rng)
        else:
            order = _shuffle_by_label(
                labels[image], batch_size, samples_per_label, rng
            )
        image, captions = image[order], captions[order]
    return Epoch(image, captions, rng.integers(2**31, size=[len(image), 2]))


def _shuffle_in_buckets(length, batch_size, rng):
    order = rng.permutation(len(length))
    whole = len(order) // batch_size * batch_size
    order, last = order[:whole], order[whole:]
    bucket = np.arange(whole) // (batch_size * _BUCKETED_BATCHES)
    order = order[np.lexsort([length[order], bucket])]
    order = rng.permutation(order.reshape(-1, batch_size))
    return np.concatenate([order.reshape(-1), last])


def _shuffle_by_label(label, batch_size, samples, rng):
    """Orders groups so that batches hold so many samples of each label.

    Each label's groups are dealt into hands of `samples`. The first hands of
    all labels make up batches, then the second hands and so on. What is left
    over, smaller hands and those that do not fill a batch, comes last.
    """
    order = np.lexsort([rng.random(len(label)), label])
    ordered = label[order]
    first = np.searchsorted(ordered, ordered)
    size = np.searchsorted(ordered, ordered, "right") - first
    turn = (np.arange(len(label)) - first) // samples
    whole = (turn + 1) * samples <= size

    hands, turns = order[whole].reshape(-1, samples), turn[whole][::samples]
    by_turn = np.lexsort([rng.random(len(turns)), turns])
    hands, turns = hands[by_turn], turns[by_turn]
    begin = np.searchsorted(turns, turns)
    count = np.searchsorted(turns, turns, "right") - begin
    labels_per_batch = batch_size // samples
    fills = np.arange(len(turns)) - begin < count - count % labels_per_batch

    # Equal sizes side by side, so that few hands are torn apart.
    small = np.lexsort([rng.random(len(label))[first], -(size % samples)])
    rest = np.concatenate(
        [hands[~fills].reshape(-1), order[small[~whole[small]]]]
    )
    end = len(rest) - len(rest) % batch_size
    full = np.concatenate([hands[fills].reshape(-1), rest[:end]])
    full = rng.permutation(full.reshape(-1, batch_size))
    return np.concatenate([full.reshape(-1), rest[end:]])
