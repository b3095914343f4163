"""The pictures of the concepts: each module has a function `draw` that returns a figure."""

from website.pictures import changed_world, code_layers, delayed_round, from_choice_to_outcome

PICTURES = {
    "from-choice-to-outcome": from_choice_to_outcome.draw,
    "delayed-round": delayed_round.draw,
    "changed-world": changed_world.draw,
    "code-layers": code_layers.draw,
}
