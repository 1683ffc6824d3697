"""The outputs of a layer that is called several times, as Keras 2 gave them."""

__all__ = ["OutputsByCall"]


class OutputsByCall:
    """Adds `get_output_at` to layers of encoders: those of ALBERT are called once for each transformer layer."""

    def get_output_at(self, node_index):
        """The symbolic output of one of the calls of the layer.

        Args:
            node_index: The index of the call, from 0; negative ones count from the last.
        """
        nodes = self._inbound_nodes
        if not -len(nodes) <= node_index < len(nodes):
            raise ValueError(f"`{self.name}` was called {len(nodes)} times. Received: node_index={node_index}")
        outputs = nodes[node_index].outputs
        return outputs[0] if len(outputs) == 1 else outputs
