"""Figures from papers, to stand beside one's own."""

CMPM = "Zhang & Lu 2018"
ITMEETSAL = "Chen et al. 2021"


def _row(i2t=(), t2i=(), ks=(1, 5, 10)):
    return {
        f"{direction}_r{k}": round(value / 100, 4)
        for direction, values in (("i2t", i2t), ("t2i", t2i))
        for k, value in zip(ks, values)
    }


# Zhang & Lu: "Deep Cross-Modal Projection Learning for Image-Text Matching",
# ECCV 2018, Tables 1 to 4. Chen et al.: "Integrating Information Theory and
# Adversarial Learning for Cross-modal Retrieval", Pattern Recognition 2021,
# Tables 1 to 3.
PUBLISHED = {
    "flickr8k": {
        f"ITMeetsAL (MobileNet), {ITMEETSAL}": _row((30.9, 58.6, 70.8)),
        f"ITMeetsAL (ResNet-152), {ITMEETSAL}": _row((40.1, 67.8, 79.2)),
    },
    "flickr30k": {
        f"CMPM (MobileNet), {CMPM}": _row(
            (37.1, 65.8, 76.3), (29.1, 56.3, 67.7)
        ),
        f"CMPM+CMPC (MobileNet), {CMPM}": _row(
            (40.3, 66.9, 76.7), (30.4, 58.2, 68.5)
        ),
        f"CMPM+CMPC (ResNet-152), {CMPM}": _row(
            (49.6, 76.8, 86.1), (37.3, 65.7, 75.5)
        ),
        f"ITMeetsAL (MobileNet), {ITMEETSAL}": _row(
            (46.6, 73.5, 82.5), (34.4, 63.3, 74.2)
        ),
        f"ITMeetsAL (ResNet-152), {ITMEETSAL}": _row(
            (56.5, 82.2, 89.6), (43.5, 71.8, 80.2)
        ),
    },
    "coco-1k": {
        f"CMPM+CMPC (MobileNet), {CMPM}": _row(
            (52.9, 83.8, 92.1), (41.3, 74.6, 85.9)
        ),
        f"CMPM (ResNet-152), {CMPM}": _row(
            (56.1, 86.3, 92.9), (44.6, 78.8, 89.0)
        ),
        f"ITMeetsAL (MobileNet), {ITMEETSAL}": _row(
            (54.7, 84.3, 91.1), (41.0, 76.7, 88.1)
        ),
        f"ITMeetsAL (ResNet-152), {ITMEETSAL}": _row(
            (58.5, 85.3, 92.1), (48.3, 82.0, 90.6)
        ),
    },
    "coco-5k": {
        f"CMPM+CMPC (MobileNet), {CMPM}": _row(
            (24.6, 52.3, 66.4), (19.1, 44.6, 58.4)
        ),
        f"CMPM (ResNet-152), {CMPM}": _row(
            (31.1, 60.7, 73.9), (22.9, 50.2, 63.8)
        ),
    },
    "cuhk_pedes": {
        f"CMPM, {CMPM}": _row(t2i=(44.02, 77.00), ks=(1, 10)),
        f"CMPM+CMPC, {CMPM}": _row(t2i=(49.37, 79.27), ks=(1, 10)),
        f"ITMeetsAL (MobileNet), {ITMEETSAL}": _row(t2i=(51.85, 73.36, 81.27)),
        f"ITMeetsAL (ResNet-152), {ITMEETSAL}": _row(t2i=(55.72, 76.15, 84.26)),
    },
    "cub": {
        f"CMPM, {CMPM}": {"i2t_r1": 0.621, "t2i_ap50": 0.646},
        f"CMPM+CMPC, {CMPM}": {"i2t_r1": 0.643, "t2i_ap50": 0.679},
    },
    "flowers": {
        f"CMPM, {CMPM}": {"i2t_r1": 0.661, "t2i_ap50": 0.677},
        f"CMPM+CMPC, {CMPM}": {"i2t_r1": 0.689, "t2i_ap50": 0.697},
    },
}

_PROTOCOLS = {
    "flickr8k": ("all",),
    "flickr30k": ("all",),
    "cuhk_pedes": ("all", "identity"),
    "cub": ("class",),
    "flowers": ("class",),
}


def published(data: str, protocol: str = "all") -> dict[str, dict[str, float]]:
    """Rows of papers that measured the same thing; none if there is none.

    They stand beside one's own in `report.table(…)` and, as `others=…`, on
    the page that `report.save` writes.

    Args:
        data: Name of the data set.
        protocol: How it was measured.

    >>> import kmatch
    >>> kmatch.retrieval.published("shapes", "all")
    {}
    >>> rows = kmatch.retrieval.published("coco", "coco-1k")
    >>> row = rows["CMPM (ResNet-152), Zhang & Lu 2018"]
    >>> row["t2i_r1"]
    0.446
    """
    if data == "coco":
        return PUBLISHED.get("coco-5k" if protocol == "all" else protocol, {})
    return PUBLISHED[data] if protocol in _PROTOCOLS.get(data, ()) else {}
