"""CMPM with a frozen MobileNet and BiLSTM on Flickr8K.

The loss of Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text
Matching", ECCV 2018, on a data set that the paper does not use. The image
tower stays as ImageNet left it, so its features are computed once, and a
training takes minutes without a GPU.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import kmatch
from kmatch import recipe

FLICKR8K = recipe.Settings(
    data="flickr8k",
    image_tower=partial(kmatch.towers.mobilenet, image_size=224, alpha=0.75),
    losses=recipe.cmpm,
    batch_size=128,
    augment="flip",
    word_embedding=300,
    units=256,
    dropout=0.3,
    batch_norm_momentum=0.95,
    standardize_features=True,
    stages=[
        recipe.Stage(
            epochs=9,
            learning_rate=recipe.cosine(8e-4),
            freeze_image_tower=True,
            cache_features=True,
        ),
    ],
)

if __name__ == "__main__":
    recipe.run("flickr8k_mobilenet", __doc__, FLICKR8K, paper={})
