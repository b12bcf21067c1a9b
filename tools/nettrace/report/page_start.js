// Starts the page, after all functions of the other files.
for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;
for (const id of ["kinds-table", "processes-table", "threads-table", "durations-table", "losses-table", "account-table", "intervals-table",
  "files-table"]) {
  if (byId(id)) makeSortable(byId(id));
}
makeLegend();
makeLanes();
makeControls();
makeList();
makeFilters();
makeHistogram();
makeActivities();
// Only setWindow keeps the window within the file.
setWindow(...home);
state.home = [state.from, state.to];
if (!readAddress()) {
  drawActivity();
  search();
}
drawHistogram();
addEventListener("resize", () => { redraw(); drawHistogram(); });
