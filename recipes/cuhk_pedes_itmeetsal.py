"""ITMeetsAL with a choice of image towers and BiLSTM on CUHK-PEDES.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021, Table 2 and, from image to
text, Table 6.
--backbone chooses MobileNet, VGG-19 or ResNet-152; --paradigm separate trains
the variant of Figure 7.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from kmatch import itmeetsal

PAPER = {
    "mobilenet": {"t2i_r1": 0.5185, "t2i_r5": 0.7336, "t2i_r10": 0.8127},
    "vgg": {"t2i_r1": 0.4443, "t2i_r5": 0.6826, "t2i_r10": 0.7750},
    "resnet152": {
        "i2t_r1": 0.6558, "i2t_r10": 0.9360,
        "t2i_r1": 0.5572, "t2i_r5": 0.7615, "t2i_r10": 0.8426,
    },
}  # fmt: skip

if __name__ == "__main__":
    itmeetsal.run("cuhk_pedes_itmeetsal", __doc__, "cuhk_pedes", PAPER)
