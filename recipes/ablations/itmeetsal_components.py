"""What each term of ITMeetsAL brings: Table 4, with MobileNet.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021. The paper's figures are for
Flickr30K with a fine-tuned backbone. In every row a discriminator watches; in
the first three the encoders do not see it.

Without --data-dir it trains smaller models on embedded data. On real data:

    python recipes/ablations/itmeetsal_components.py --data flickr8k \
        --data-dir flickr8k --image-weights mobilenet_7_5_224_tf_no_top.h5 \
        --alpha 0.75 --freeze --captions-per-image 5 --epochs 5
"""

from kmatch import itmeetsal

ROWS = {
    "Baseline1: L_ce + L_tr": {
        "loss_weights": {"label_balance": 0, "cmpm": 0, "negative_entropy": 0},
    },
    "Baseline2: L_ce + L_tr + L_di": {
        "loss_weights": {"cmpm": 0, "negative_entropy": 0},
    },
    "Baseline3: L_ce + L_tr + L_di + L_kl": {
        "loss_weights": {"negative_entropy": 0},
    },
    "Full method: … + L_s + L_c": {},
}
PAPER = {
    "Baseline1: L_ce + L_tr": {
        "i2t_r1": 0.406, "i2t_r10": 0.808, "i2t_map": 0.231,
        "t2i_r1": 0.319, "t2i_r10": 0.722, "t2i_map": 0.319,
    },
    "Baseline2: L_ce + L_tr + L_di": {
        "i2t_r1": 0.423, "i2t_r10": 0.806, "i2t_map": 0.244,
        "t2i_r1": 0.325, "t2i_r10": 0.730, "t2i_map": 0.325,
    },
    "Baseline3: L_ce + L_tr + L_di + L_kl": {
        "i2t_r1": 0.447, "i2t_r10": 0.810, "i2t_map": 0.252,
        "t2i_r1": 0.326, "t2i_r10": 0.732, "t2i_map": 0.326,
    },
    "Full method: … + L_s + L_c": {
        "i2t_r1": 0.466, "i2t_r10": 0.825, "i2t_map": 0.263,
        "t2i_r1": 0.344, "t2i_r10": 0.741, "t2i_map": 0.344,
    },
}  # fmt: skip

if __name__ == "__main__":
    itmeetsal.ablate("itmeetsal_components", __doc__, ROWS, PAPER)
