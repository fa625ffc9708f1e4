"""ITMeetsAL with a choice of image towers and BiLSTM on Flickr8K.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021, Table 3.
--backbone chooses MobileNet, VGG-19 or ResNet-152; --paradigm separate trains
the variant of Figure 7.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from kmatch import itmeetsal

PAPER = {
    "mobilenet": {"i2t_r1": 0.309, "i2t_r5": 0.586, "i2t_r10": 0.708},
    "vgg": {"i2t_r1": 0.280, "i2t_r5": 0.527, "i2t_r10": 0.631},
    "resnet152": {"i2t_r1": 0.401, "i2t_r5": 0.678, "i2t_r10": 0.792},
}  # fmt: skip

if __name__ == "__main__":
    itmeetsal.run("flickr8k_itmeetsal", __doc__, "flickr8k", PAPER)
