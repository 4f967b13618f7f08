"""Co-RL Lab's dashboard: `streamlit run app.py`.

The frame around every page: title, navigation, and the one place where errors end.
It imports neither torch nor MLflow, so that the first page is there at once.
"""

from pathlib import Path

import streamlit as st

from pages.components import serve

serve.wait()  # before anything else is imported: see there

from pages.components import access, boundary, frame, plotly_js, trash  # noqa: E402

ICONS = Path(__file__).parent / "pages" / "components"

st.set_page_config(page_title="Co-RL Lab", page_icon=str(ICONS / "icon.png"), layout="wide")
st.logo(str(ICONS / "icon.svg"), size="small")
access.gate()
with boundary.guard():
    plotly_js.ensure()

page = frame.navigation()
frame.follow()
boundary.note_visit(page.url_path)
boundary.show_pending()
access.who()
trash.undo_notice()
with boundary.guard():
    frame.run(page)
