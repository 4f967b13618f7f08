"""How `corl_core.answers` turns the text of an answer into its canonical key; `answers` holds the contract.

boxes.py        completion → the inside of its last box
clean.py        LaTeX, Unicode and plain text → one spelling
units.py        without currency, percent and degree signs, and units
shapes.py       the key of an answer by its shape: calls the next four
numbers.py      exact arithmetic; bounded.py: no operation on numbers too large to write
phrases.py      words, amounts and congruences, which are text
relations.py    equations and inequalities whose form decides
lists.py        lists, sets, tuples, intervals, unions, matrices
parts.py        what those share
formulas.py     which texts are mathematics beyond numbers, and their LaTeX
workers.py      processes that do that mathematics and can be killed
math_worker.py  the main program of such a process
algebra.py      math-verify and sympy: a formula → its canonical spelling

Only the last two need more than the standard library.
"""
