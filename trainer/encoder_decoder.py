"""An encoder and a decoder that looks at it (T5 1910.10683), of the parts of model.py.

The encoder reads in both directions within a document; between attention and feed-forward each
layer of the decoder looks at what the encoder made of the same document. Embedding, positions and
layers are those of a decoder alone, so `shape.encoder_depth` is all that differs. Without encoder
tokens it is a decoder that looks at nothing: so held-out text is scored.
"""

from __future__ import annotations

from torch import Tensor, nn

from trainer.attention import Scope, make_cross_mask
from trainer.model import Decoder, Layer, run_layers
from trainer.shapes import Shape


class EncoderDecoder(Decoder):
    def __init__(self, shape: Shape, vocabulary: int) -> None:
        super().__init__(shape, vocabulary)
        numbers = range(shape.encoder_depth)
        self.encoder_layers = nn.ModuleDict({str(number): Layer(shape) for number in numbers})
        self.encoder_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)

    def forward(
        self,
        inputs: Tensor,
        scope: Scope,
        labels_BT: Tensor | None = None,
        z_weight: float = 0.0,
        encoder: tuple[Tensor, Scope] | None = None,
    ) -> Tensor:
        """As Decoder's; `encoder` is what the encoder reads, [B, E], and its scope."""
        memory = None
        if encoder is not None:
            tokens_BE, encoder_scope = encoder
            x_BED = self.embedding(tokens_BE)
            x_BED = run_layers(self.encoder_layers, self.shape, x_BED, encoder_scope)
            memory = self.encoder_norm(x_BED), make_cross_mask(scope, encoder_scope)
        return self.head(self.stream(inputs, scope, memory), labels_BT, z_weight)


def make_model(shape: Shape, vocabulary: int, layers: range | None = None) -> Decoder:
    """The model of a shape: a decoder, or a stage of one, or with an encoder, then whole."""
    if not shape.encoder_depth:
        return Decoder(shape, vocabulary, layers)
    assert layers in (None, range(shape.depth)), "check_fit refuses stages of an encoder-decoder"
    return EncoderDecoder(shape, vocabulary)
