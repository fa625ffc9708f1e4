"""ITMeetsAL with a choice of image towers and BiLSTM on MSCOCO.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021, Table 1, whose figures are
for 1,000 test images.
--backbone chooses MobileNet, VGG-19 or ResNet-152; --paradigm separate trains
the variant of Figure 7.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from kmatch import itmeetsal

PAPER = {
    "mobilenet": {
        "i2t_r1": 0.547, "i2t_r5": 0.843, "i2t_r10": 0.911,
        "t2i_r1": 0.410, "t2i_r5": 0.767, "t2i_r10": 0.881,
    },
    "vgg": {
        "i2t_r1": 0.442, "i2t_r5": 0.761, "i2t_r10": 0.863,
        "t2i_r1": 0.371, "t2i_r5": 0.727, "t2i_r10": 0.851,
    },
    "resnet152": {
        "i2t_r1": 0.585, "i2t_r5": 0.853, "i2t_r10": 0.921,
        "t2i_r1": 0.483, "t2i_r5": 0.820, "t2i_r10": 0.906,
    },
}  # fmt: skip

if __name__ == "__main__":
    itmeetsal.run("coco_itmeetsal", __doc__, "coco", PAPER, protocol="coco-1k")
