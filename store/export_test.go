package store

import "context"

// BackupAsIs is Backup without a look at the schema.
func BackupAsIs(ctx context.Context, rawURL, path string) error {
	db, err := connect(ctx, rawURL, false)
	if err != nil {
		return err
	}
	defer db.Close()
	return placeFile(path, func(temporary string) error { return db.copyTo(ctx, rawURL, temporary) })
}
