"""Where questions come from, and what is in them.

questions.py         what every source gives: a Question
sources.py           a source's rows as questions: built in, file, dataset; the order of a run
arithmetic.py        the built-in questions (textbook.py teaches tiny models from them)
files.py             a file's rows, by content (json_text.py, csv_text.py); uploads.py keeps what a browser sends
hub.py               a Hugging Face dataset's rows
tables.py            rows, cells and the places that errors name
columns.py           which column is the question, the answer, … (chat.py reads chats)
gold.py, choices.py  the true answer in a cell; multiple choice
preflight.py         what is found before a run starts (checks.py, overlap.py, learning_signal.py)
paraphrase.py        the same question in other words: asking for one, and the audit
"""
