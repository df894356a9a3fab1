# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share. README.md, one folder up, describes the files."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "support"))
