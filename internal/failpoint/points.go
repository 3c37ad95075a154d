// Package failpoint names the durable steps of the control plane and, in a build with the tag failpoint, ends
// the process or fails the step at one of them. A build without the tag holds nothing of it.
package failpoint

// A Point is a place between two durable steps. A crash there leaves what its comment says.
type Point int

// The points, in the order in which a deed comes to them.
const (
	VersionTaken     Point = iota // nothing: the version goes back with the transaction
	VersionCommitted              // a version that is never used

	PublishBegin      // nothing
	PublishAdvanced   // nothing; the cohort's committed pointer has moved in the transaction
	PublishGeneration // nothing; the generation has moved in the transaction
	PublishInserted   // nothing; the new snapshot stands in the transaction
	PublishResealed   // nothing; the target has another seal in the transaction
	PublishReplay     // nothing; the answer to a repetition is kept in the transaction
	PublishCleared    // nothing; no row is live in the transaction
	PublishMoved      // nothing; the new row is live in the transaction
	PublishActivated  // nothing; the activation is written in the transaction
	PublishAudited    // nothing; all is written, and not committed
	PublishCommitted  // everything; nobody was answered

	AheadRecorded  // nothing; what the node proved is written, and not committed
	AheadCommitted // signing is stopped; the node was not answered

	RecoverEpoch     // nothing; the epoch is raised in the transaction
	RecoverLifted    // nothing; the refusal to sign is lifted in the transaction
	RecoverVersion   // nothing but versions that are never used (PostgreSQL: a sequence does not go back)
	RecoverAudited   // the same; all is written, and not committed
	RecoverCommitted // everything; nobody was answered

	RolloutProposed  // nothing; the cohort has the proposal in the transaction
	RolloutInserted  // nothing; the candidate stands in the transaction
	RolloutKept      // nothing; what it carries is written in the transaction
	RolloutAudited   // nothing; all is written, and not committed
	RolloutCommitted // everything; nobody was answered

	DecideBegin       // nothing; the cohort's head has moved in the transaction
	DecideProvisional // nothing; the trial's activation is written in the transaction
	DecidePublished   // nothing; the live pointer has moved in the transaction
	DecideAudited     // nothing; all is written, and not committed

	RosterChanged // nothing; the roster has changed in the transaction

	PurgeNumbered  // nothing; the number is taken in the transaction
	PurgeInserted  // nothing; the purge stands in the transaction
	PurgeDropped   // nothing; what is too old is gone in the transaction
	PurgeCommitted // everything; nobody was answered, and no node has heard of it

	TokenInsert // nothing; the node is written in the transaction, its token is not

	RecordsRevised  // nothing; the zone's revision is raised in the transaction
	RecordsDeleted  // nothing; records are gone in the transaction, others not yet there
	RecordsInserted // nothing; the zone's count of records is the old one in the transaction
	RecordsAudited  // nothing; all is written, and not committed
	ObjectRevised   // nothing; the zone's revision is raised in the transaction, the object is the old one

	AuditAppended // of any transaction that ends with its audit entry: nothing

	Migrated            // the schema; no operator
	BootstrapPlan       // the same and a plan
	BootstrapWorkspace  // the same and a workspace
	BootstrapUser       // the same and a user without a role
	BootstrapMembership // the same, with a role and without a token

	FileWritten // a temporary file beside it
	FileSynced  // the same, on disk
	FileCleared // a restore into an empty SQLite file: no file of that name
	FileLinked  // the file, which a power cut may still take back, and the temporary one
	FileDone    // everything
	Restored    // PostgreSQL: everything

	points // how many there are
)

// names are the points as people write them.
var names = [...]string{
	VersionTaken:     "store.version.taken",
	VersionCommitted: "store.version.committed",

	PublishBegin:      "store.publish.begin",
	PublishAdvanced:   "store.publish.advanced",
	PublishGeneration: "store.publish.generation",
	PublishInserted:   "store.publish.inserted",
	PublishResealed:   "store.publish.resealed",
	PublishReplay:     "store.publish.replay",
	PublishCleared:    "store.publish.cleared",
	PublishMoved:      "store.publish.moved",
	PublishActivated:  "store.publish.activated",
	PublishAudited:    "store.publish.audited",
	PublishCommitted:  "store.publish.committed",

	AheadRecorded:  "store.ahead.recorded",
	AheadCommitted: "store.ahead.committed",

	RecoverEpoch:     "store.recover.epoch",
	RecoverLifted:    "store.recover.lifted",
	RecoverVersion:   "store.recover.version",
	RecoverAudited:   "store.recover.audited",
	RecoverCommitted: "store.recover.committed",

	RolloutProposed:  "store.rollout.proposed",
	RolloutInserted:  "store.rollout.inserted",
	RolloutKept:      "store.rollout.kept",
	RolloutAudited:   "store.rollout.audited",
	RolloutCommitted: "store.rollout.committed",

	DecideBegin:       "store.decide.begin",
	DecideProvisional: "store.decide.provisional",
	DecidePublished:   "store.decide.published",
	DecideAudited:     "store.decide.audited",

	RosterChanged: "store.roster.changed",

	PurgeNumbered:  "store.purge.numbered",
	PurgeInserted:  "store.purge.inserted",
	PurgeDropped:   "store.purge.dropped",
	PurgeCommitted: "store.purge.committed",

	TokenInsert: "store.token.insert",

	RecordsRevised:  "store.records.revised",
	RecordsDeleted:  "store.records.deleted",
	RecordsInserted: "store.records.inserted",
	RecordsAudited:  "store.records.audited",
	ObjectRevised:   "store.object.revised",

	AuditAppended: "store.audit.appended",

	Migrated:            "cli.migrate.migrated",
	BootstrapPlan:       "control.bootstrap.plan",
	BootstrapWorkspace:  "control.bootstrap.workspace",
	BootstrapUser:       "control.bootstrap.user",
	BootstrapMembership: "control.bootstrap.membership",

	FileWritten: "store.file.written",
	FileSynced:  "store.file.synced",
	FileCleared: "store.file.cleared",
	FileLinked:  "store.file.linked",
	FileDone:    "store.file.done",
	Restored:    "store.restore.restored",
}

func (p Point) String() string { return names[p] }

// All returns every point.
func All() []Point {
	all := make([]Point, points)
	for i := range all {
		all[i] = Point(i)
	}
	return all
}

// OfRollouts are the points that only a store which was joined to a cohort comes to.
func OfRollouts() []Point {
	return []Point{
		PublishAdvanced, RolloutProposed, RolloutInserted, RolloutKept, RolloutAudited, RolloutCommitted,
		DecideBegin, DecideProvisional, DecidePublished, DecideAudited, RosterChanged,
	}
}
