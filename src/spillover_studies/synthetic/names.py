"""Names in synthetic.toml that claims, tables and figures refer to."""

DELAYS = ("50", "200", "400")  # the paper's
TUNED, PRINTED, ONCE = "ndc-sem-tuned", "ndc-sem", "ndc-sem-once"
TUNINGS = {
    TUNED: "tuned for each delay on other worlds",
    PRINTED: "printed parameters",
    ONCE: "tuned once for all delays",
}
FRESH, PICTURE = "fresh", "picture"  # worlds: many, and the one of the figures
SEM_UCB, SEM_UCB_TUNED = "sem-ucb", "sem-ucb-tuned"
BLIND = ("cucb", "cts", "ftrl")  # the rivals that do not learn the graph
RIVALS = (SEM_UCB, *BLIND, "random")
ORACLE, SWITCHING = "delayed-oracle", "switching-sem"
SEARCHES = ("ndc-sem-grid", "sem-ucb-grid")  # files in tuning/
FOLDER = "tuning"  # of what they find, inside that of the results
EXACT = 1e-6  # an error of the graph below which it counts as learned; that of an empty graph is about 0.025
