// Starts the page. The page has this file last, because it calls functions of all other script files.
for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;
for (const id of ["kinds-table", "processes-table", "threads-table", "durations-table", "losses-table", "account-table", "intervals-table",
  "files-table"]) {
  if (byId(id)) makeSortable(byId(id));
}
for (const table of document.querySelectorAll("#stack-tables table, #functions-here-table")) makeSortable(table);
makeLegend();
makeLanes();
makeControls();
makeList();
makeFilters();
makeHistogram();
makeFlames();
makeActivities();
// setWindow limits the window to the time of the file, so state.home may differ from `home`.
setWindow(...home);
state.home = [state.from, state.to];
if (!readAddress()) {
  drawActivity();
  search();
}
drawHistogram();
addEventListener("resize", () => { redraw(); drawHistogram(); drawFlames(); });
