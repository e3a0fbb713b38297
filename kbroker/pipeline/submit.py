"""The script to give to spark-submit: it takes the arguments of `kbroker pipeline`.

    spark-submit --master spark://host:7077 --jars "$(kbroker pipeline jars)" \\
        "$(kbroker pipeline jars --script)" run pipeline.yml
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from kbroker.cli import main

    sys.exit(main(["pipeline", *sys.argv[1:]]))
