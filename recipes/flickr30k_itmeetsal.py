"""ITMeetsAL with a choice of image towers and BiLSTM on Flickr30K.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021, Table 1.
--backbone chooses MobileNet, VGG-19 or ResNet-152; --paradigm separate trains
the variant of Figure 7.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from kmatch import itmeetsal

PAPER = {
    "mobilenet": {
        "i2t_r1": 0.466, "i2t_r5": 0.735, "i2t_r10": 0.825,
        "t2i_r1": 0.344, "t2i_r5": 0.633, "t2i_r10": 0.742,
    },
    "vgg": {
        "i2t_r1": 0.385, "i2t_r5": 0.665, "i2t_r10": 0.763,
        "t2i_r1": 0.307, "t2i_r5": 0.594, "t2i_r10": 0.703,
    },
    "resnet152": {
        "i2t_r1": 0.565, "i2t_r5": 0.822, "i2t_r10": 0.896,
        "t2i_r1": 0.435, "t2i_r5": 0.718, "t2i_r10": 0.802,
    },
}  # fmt: skip

if __name__ == "__main__":
    itmeetsal.run("flickr30k_itmeetsal", __doc__, "flickr30k", PAPER)
