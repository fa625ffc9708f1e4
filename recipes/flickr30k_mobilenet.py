"""CMPM + CMPC with MobileNet and BiLSTM on Flickr30K.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 1: image-to-text R@1/5/10 of 40.3/66.9/76.7 and text-to-image
of 30.4/58.2/68.5.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (MobileNet), paper": {
        "i2t_r1": 0.403, "i2t_r5": 0.669, "i2t_r10": 0.767,
        "t2i_r1": 0.304, "t2i_r5": 0.582, "t2i_r10": 0.685,
    },
}  # fmt: skip

FLICKR30K = recipe.Settings(
    data="flickr30k",
    image_tower=partial(
        kmatch.towers.mobilenet,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm_cmpc,
    batch_size=32,
    augment="flip",
    stages=[recipe.Stage(epochs=30, learning_rate=2e-4)],
)

if __name__ == "__main__":
    recipe.run("flickr30k_mobilenet", __doc__, FLICKR30K, PAPER)
