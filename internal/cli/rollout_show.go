package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/api"
)

// stateWord is the state in words.
func stateWord(r *api.Rollout) string {
	if r.OnTrial {
		return "on trial"
	}
	return r.State
}

// tally counts members.
func tally(r *api.Rollout, is func(api.RolloutMember) bool) string {
	n := 0
	for _, m := range r.Members {
		if is(m) {
			n++
		}
	}
	return fmt.Sprintf("%d of %s", n, count(r.EpochSize, "node"))
}

func hasBuilt(m api.RolloutMember) bool { return m.Vote == "ack" && !m.Restarted }

// span prints a time span that people wait for.
func span(d time.Duration) string {
	if d <= 0 {
		return "no time"
	}
	return max(d.Round(time.Second), time.Second).String()
}

// stateLine tells where a rollout is, in one line.
func stateLine(r *api.Rollout) string {
	decided := fmt.Sprintf("%s %s", r.State, moment(r.DecidedAt))
	switch {
	case r.OnTrial:
		return fmt.Sprintf("on trial — converged: %s; %s left", tally(r, func(m api.RolloutMember) bool { return m.Converged }), span(r.ConfirmDeadline.Sub(r.Now)))
	case r.Open:
		line := fmt.Sprintf("%s — built: %s; %s left", r.State, tally(r, hasBuilt), span(r.Deadline.Sub(r.Now)))
		if r.State == "proposed" {
			line += "; no control plane has taken it up yet"
		}
		return line
	case r.State == "committed":
		return fmt.Sprintf("%s — served by %s", decided, tally(r, func(m api.RolloutMember) bool { return m.Serves }))
	case r.State == "confirmed":
		return decided
	}
	return fmt.Sprintf("%s by %s", decided, r.DecidedBy)
}

// rolloutHead is what is told of the rollout as a whole, without line ends.
func rolloutHead(r *api.Rollout) []string {
	change := fmt.Sprintf("v%d, generation %d, %s by %s", r.Version, r.Generation, r.Kind, r.ProposedBy)
	if r.Message != "" {
		change += ": " + r.Message
	}
	lines := []string{"rollout    " + r.ID, "change     " + change, "state      " + stateLine(r)}
	if r.ConfirmWindow > 0 {
		lines = append(lines, fmt.Sprintf("trial      %s, works for %s, 5xx up by less than %s", r.ConfirmWindow, r.Soak, r.Margin))
	}
	if r.Reason != "" {
		lines = append(lines, "reason     "+r.Reason)
	}
	if len(r.WaitingFor) > 0 {
		lines = append(lines, "waits for  "+strings.Join(r.WaitingFor, ", "))
	}
	for i, line := range lines {
		lines[i] = inert(line)
	}
	return lines
}

// rolloutTable is what each node said, in columns: a head, then a line a node, without line ends.
func rolloutTable(r *api.Rollout) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tBUILT\tSERVES\tCONVERGED")
	for _, m := range r.Members {
		cells := []string{m.Name, builtCell(m), yes(m.Serves), convergedCell(r, m)}
		for i, cell := range cells {
			if cells[i] = inert(cell); cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func builtCell(m api.RolloutMember) string {
	switch {
	case m.Restarted:
		return "NO: restarted since it voted"
	case m.Vote == "nack":
		return "NO: " + m.Reason
	}
	return yes(m.Vote == "ack")
}

func convergedCell(r *api.Rollout, m api.RolloutMember) string {
	switch {
	case m.Withdrawn != "":
		return "NO: " + m.Withdrawn
	case m.Converged && r.OnTrial:
		return fmt.Sprintf("yes, for %s: %s", span(r.Now.Sub(m.ConvergedSince)), m.Detail)
	case m.Converged:
		return "yes: " + m.Detail
	case m.Restarted && !m.ConvergedSince.IsZero():
		return "void: it restarted"
	case !m.ConvergedSince.IsZero():
		return "expired: it has not said so since " + moment(m.RenewedAt)
	}
	return ""
}

// printRollout prints a rollout whole.
func (a *app) printRollout(r *api.Rollout) {
	lines := rolloutHead(r)
	if len(r.Members) > 0 {
		lines = append(append(lines, ""), rolloutTable(r)...)
	}
	fmt.Fprintln(a.Stdout, strings.Join(lines, "\n"))
}

// change is a line about what became of a rollout, and when that was by the database's clock; zero: nobody kept it.
type change struct {
	at   time.Time
	text string
}

// rolloutChanges tells, one line each, what now says that before did not; before is nil at first. Lines are in the order of what they tell.
func rolloutChanges(before, now *api.Rollout) []change {
	was := map[string]api.RolloutMember{}
	state, trial := "", false
	// What has no time of its own came up since the last answer. With none before, that may be long ago.
	var seen time.Time
	if before != nil {
		state, trial, seen = before.State, before.OnTrial, now.Now
		for _, m := range before.Members {
			was[m.ID] = m
		}
	}
	var lines []change
	say := func(at time.Time, format string, args ...any) {
		lines = append(lines, change{at, inert(fmt.Sprintf(format, args...))})
	}
	if before == nil {
		text := fmt.Sprintf("v%d is put to %s, which must agree by %s", now.Version, count(now.EpochSize, "node"), moment(now.Deadline))
		if now.ConfirmWindow > 0 {
			text += fmt.Sprintf(" and try it for %s", now.ConfirmWindow)
		}
		say(now.ProposedAt, "%s", text)
		state = "proposed"
	}
	for _, m := range now.Members {
		b := was[m.ID]
		if m.Vote == "ack" && b.Vote != "ack" {
			say(m.VotedAt, "%s has built it", m.Name)
		}
		if m.Vote == "nack" && b.Vote != "nack" {
			say(m.VotedAt, "%s cannot take it over: %s", m.Name, m.Reason)
		}
		if m.Restarted && !b.Restarted {
			say(seen, "%s has restarted since it voted", m.Name)
		}
	}
	if now.State != "staging" && now.CommittedAt != (time.Time{}) && (before == nil || before.CommittedAt.IsZero()) {
		if now.ConfirmWindow > 0 {
			say(now.CommittedAt, "committed on trial, until %s", moment(now.ConfirmDeadline))
		} else {
			say(now.CommittedAt, "committed: every node has built it")
		}
	}
	for _, m := range now.Members {
		b := was[m.ID]
		if m.Serves && !b.Serves {
			say(seen, "%s serves it", m.Name)
		}
		if m.Converged && !b.Converged {
			say(m.ConvergedSince, "%s has converged: %s", m.Name, m.Detail)
		}
		if m.Withdrawn != "" && b.Withdrawn == "" {
			say(m.WithdrawnAt, "%s does not work with it: %s", m.Name, m.Withdrawn)
		}
		if b.Converged && !m.Converged && m.Withdrawn == "" && !m.Restarted {
			say(seen, "%s does not say any more that it works", m.Name)
		}
	}
	if now.State != state || now.OnTrial != trial {
		switch now.State {
		case "confirmed":
			say(now.DecidedAt, "confirmed: it works on every node")
		case "aborted", "reverted":
			say(now.DecidedAt, "%s by %s: %s", now.State, now.DecidedBy, now.Reason)
		}
	}
	return inOrder(lines)
}

// inOrder sorts lines by their times; those without one stay behind what they were behind.
func inOrder(lines []change) []change {
	by := make([]time.Time, len(lines))
	order := make([]int, len(lines))
	var last time.Time
	for i, line := range lines {
		if !line.at.IsZero() {
			last = line.at
		}
		by[i], order[i] = last, i
	}
	slices.SortStableFunc(order, func(i, j int) int { return by[i].Compare(by[j]) })
	sorted := make([]change, len(lines))
	for i, from := range order {
		sorted[i] = lines[from]
	}
	return sorted
}

// lineView prints a line for each change, with the seconds from the proposal until it happened, which are left out where nobody kept when
// that was.
type lineView struct {
	w       io.Writer
	before  *api.Rollout
	silence bool // the control plane does not answer, which was told
}

func (v *lineView) show(now *api.Rollout) {
	v.silence = false
	for _, c := range rolloutChanges(v.before, now) {
		after := ""
		if !c.at.IsZero() {
			after = fmt.Sprintf("%.1fs", c.at.Sub(now.ProposedAt).Seconds())
		}
		fmt.Fprintf(v.w, "%7s  %s\n", after, c.text)
	}
	v.before = now
}

func (v *lineView) lost(err error) {
	if !v.silence {
		fmt.Fprintf(v.w, "%8s %s; asking again\n", "", inert(err.Error()))
	}
	v.silence = true
}

func (v *lineView) end() {}

// tableView keeps the whole rollout on a terminal's screen, drawn anew at each answer.
type tableView struct {
	w     io.Writer
	size  func() (columns, rows int)
	drawn int // lines on the screen
	now   *api.Rollout
}

func (v *tableView) show(now *api.Rollout) {
	v.now = now
	v.draw("")
}

func (v *tableView) lost(err error) {
	v.draw("no answer  " + inert(err.Error()))
}

// end leaves the last drawing where it is.
func (v *tableView) end() { v.drawn = 0 }

func (v *tableView) draw(note string) {
	columns, rows := v.size()
	var head, body []string
	if v.now != nil {
		head, body = rolloutHead(v.now), rolloutTable(v.now)
	}
	if note != "" {
		head = append(head, note)
	}
	// The cursor stands on a line of its own under the drawing; what does not fit could not be drawn over.
	if room := max(rows-len(head)-2, 2); len(body) > room {
		body = append(body[:room-1:room-1], fmt.Sprintf("… and %d more", len(body)-room+1))
	}
	lines := append(append(head, ""), body...)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", v.drawn)
	}
	for _, line := range lines {
		b.WriteString(clipLine(line, columns-1) + "\n")
	}
	v.drawn = len(lines)
	_, _ = io.WriteString(v.w, b.String())
}

// clipLine cuts a line to n characters.
func clipLine(line string, n int) string {
	if n < 1 || utf8.RuneCountInString(line) <= n {
		return line
	}
	return string([]rune(line)[:n-1]) + "…"
}

// jsonView prints the rollout as one line of JSON for each change.
type jsonView struct {
	a      *app
	before *api.Rollout
}

func (v *jsonView) show(now *api.Rollout) {
	if v.before == nil || len(rolloutChanges(v.before, now)) > 0 || now.State != v.before.State {
		v.a.printJSONLine(now)
	}
	v.before = now
}

func (v *jsonView) lost(error) {}
func (v *jsonView) end()       {}

// quietView shows nothing.
type quietView struct{}

func (quietView) show(*api.Rollout) {}
func (quietView) lost(error)        {}
func (quietView) end()              {}

// progressView is for commands whose result is something else: on standard error, and not beside JSON.
func (a *app) progressView() rolloutView {
	switch {
	case a.json:
		return quietView{}
	case a.StderrIsTerminal:
		return &tableView{w: a.Stderr, size: a.screen}
	}
	return &lineView{w: a.Stderr}
}

// watchView is for commands whose result is what is shown.
func (a *app) watchView() rolloutView {
	switch {
	case a.json:
		return &jsonView{a: a}
	case a.StdoutIsTerminal:
		return &tableView{w: a.Stdout, size: a.screen}
	}
	return &lineView{w: a.Stdout}
}

// screen is the terminal's size, 80 by 24 when it is not known.
func (a *app) screen() (columns, rows int) {
	if a.TerminalSize != nil {
		if columns, rows = a.TerminalSize(); columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}
