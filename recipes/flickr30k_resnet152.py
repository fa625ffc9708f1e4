"""CMPM + CMPC with ResNet-152 and BiLSTM on Flickr30K.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 1: image-to-text R@1/5/10 of 49.6/76.8/86.1 and text-to-image
of 37.3/65.7/75.5. As in section 4.1, the image encoder is fixed for 15 epochs;
then the whole model is trained for 30 more at a tenth of the rate.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (ResNet-152), paper": {
        "i2t_r1": 0.496, "i2t_r5": 0.768, "i2t_r10": 0.861,
        "t2i_r1": 0.373, "t2i_r5": 0.657, "t2i_r10": 0.755,
    },
}  # fmt: skip

FLICKR30K = recipe.Settings(
    data="flickr30k",
    image_tower=partial(
        kmatch.towers.resnet152,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm_cmpc,
    batch_size=32,
    augment="flip",
    stages=[
        recipe.Stage(
            epochs=15,
            learning_rate=2e-4,
            freeze_image_tower=True,
            cache_features=True,
        ),
        recipe.Stage(epochs=30, learning_rate=2e-5),
    ],
)

if __name__ == "__main__":
    recipe.run("flickr30k_resnet152", __doc__, FLICKR30K, PAPER)
