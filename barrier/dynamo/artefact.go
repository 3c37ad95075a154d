package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
)

// chunkBytes is how much of an artefact is in one item, which may have 400 KB.
const chunkBytes = 350 << 10

// manifest says which upload has an artefact's bytes.
type manifest struct {
	nonce  string // "": there is none
	upload string
	chunks int
	size   int
	since  time.Time // of the last Put
}

func manifestSort(d barrier.Digest) string { return prefixManifest + string(d) }

func (s *Store) manifest(ctx context.Context, d barrier.Digest) (manifest, error) {
	it, err := s.get(ctx, s.artefactKey(manifestSort(d)))
	if err != nil || len(it) == 0 {
		return manifest{}, err
	}
	return decodeManifest(it)
}

func decodeManifest(it item) (manifest, error) {
	f := fields{item: it}
	m := manifest{
		nonce: f.text(attrNonce), upload: f.text(attrUpload),
		chunks: int(f.number(attrChunks)), size: int(f.number(attrSize)),
		since: time.UnixMilli(int64(f.number(attrSince))),
	}
	if f.err == nil && (m.size > barrier.MaxArtefactBytes || m.chunks > m.size/chunkBytes+1) {
		f.err = fmt.Errorf("%d bytes in %d chunks are more than there can be", m.size, m.chunks)
	}
	if f.err != nil {
		return manifest{}, fmt.Errorf("manifest: %w", f.err)
	}
	return m, nil
}

func (s *Store) manifestItem(d barrier.Digest, m manifest, nonce string) item {
	it := s.artefactKey(manifestSort(d))
	it[attrNonce], it[attrUpload] = text(nonce), text(m.upload)
	it[attrChunks], it[attrSize] = number(uint64(m.chunks)), number(uint64(m.size))
	it[attrSince] = number(uint64(s.now().UnixMilli()))
	return it
}

// uploadItem marks chunks that no manifest names: those of a Put that has not ended, or of an artefact that is being deleted. Whoever
// finds it old deletes them.
func (s *Store) uploadItem(m manifest) item {
	it := s.artefactKey(prefixUpload + m.upload)
	it[attrChunks], it[attrSince] = number(uint64(m.chunks)), number(uint64(s.now().UnixMilli()))
	return it
}

// Put keeps the artefact: its chunks under the name of this upload, and then, in one transaction, the manifest
// that names them, if no other has come before it.
func (s *Store) Put(ctx context.Context, d barrier.Digest, artefact []byte) error {
	if err := barrier.CheckArtefact(d, artefact); err != nil {
		return err
	}
	mine := manifest{upload: rand.Text(), size: len(artefact), chunks: (len(artefact) + chunkBytes - 1) / chunkBytes}
	uploaded, kept := false, false
	err := s.repeat(ctx, "put artefact", func(ctx context.Context, nonce string) error {
		m, err := s.manifest(ctx, d)
		if err != nil {
			return err
		}
		kept = m.upload == mine.upload
		if m.nonce == nonce {
			return nil
		}
		var actions []action
		if m.nonce == "" {
			if !uploaded {
				if err := s.upload(ctx, mine, artefact); err != nil {
					return err
				}
				uploaded = true
			}
			m = mine
			actions = []action{put(s.manifestItem(d, m, nonce), absent), remove(s.artefactKey(prefixUpload+m.upload), condition{})}
		} else {
			actions = []action{put(s.manifestItem(d, m, nonce), unchanged(m.nonce))}
		}
		limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
		defer cancel()
		if err := s.write(limited, actions...); err != nil {
			return err
		}
		kept = m.upload == mine.upload
		return nil
	})
	if err == nil && uploaded && !kept {
		_ = s.discard(ctx, mine) // another upload was first; what is left of this one is swept later
	}
	return err
}

func (s *Store) upload(ctx context.Context, m manifest, artefact []byte) error {
	store := func(it item) error {
		_, err := requestWithin(ctx, s.o.TransferTimeout, func(ctx context.Context) (*dynamodb.PutItemOutput, error) {
			return s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: it}, once)
		})
		return err
	}
	if err := store(s.uploadItem(m)); err != nil {
		return err
	}
	for n := range m.chunks {
		it := s.artefactKey(chunkSort(m.upload, n))
		it[attrBody] = &types.AttributeValueMemberB{Value: artefact[n*chunkBytes : min((n+1)*chunkBytes, len(artefact))]}
		if err := store(it); err != nil {
			return fmt.Errorf("chunk %d of %d: %w", n+1, m.chunks, err)
		}
	}
	return nil
}

// Get returns the bytes of d, as they were put.
func (s *Store) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	if err := barrier.CheckDigest(d); err != nil {
		return nil, err
	}
	for range maxReads {
		m, err := s.manifest(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("get artefact: %w", err)
		}
		if m.nonce == "" {
			return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
		}
		artefact, err := s.download(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("get artefact: %w", err)
		}
		if len(artefact) == m.size {
			return artefact, nil
		}
		// It was deleted, and perhaps put again, since the manifest was read.
	}
	return nil, fmt.Errorf("get artefact: the chunks of %s are not what its manifest says", d)
}

func (s *Store) download(ctx context.Context, m manifest) ([]byte, error) {
	artefact := make([]byte, 0, m.size)
	q := withPrefix(s.artefactKey(""), prefixChunk+m.upload+"#")
	q.timeout = s.o.TransferTimeout
	err := s.all(ctx, q, func(it item) (bool, error) {
		f := fields{item: it}
		artefact = append(artefact, f.bytes(attrBody)...)
		return len(artefact) <= m.size, f.err
	})
	return artefact, err
}

// discard deletes an upload's chunks, and then what marks them.
func (s *Store) discard(ctx context.Context, m manifest) error {
	for n := range m.chunks {
		if err := s.delete(ctx, s.artefactKey(chunkSort(m.upload, n))); err != nil {
			return err
		}
	}
	return s.delete(ctx, s.artefactKey(prefixUpload+m.upload))
}

func (s *Store) delete(ctx context.Context, key item) error {
	_, err := read(ctx, s, func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) {
		return s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(s.table), Key: key}, once)
	})
	if err != nil {
		return errors.Join(errors.New("delete item"), err)
	}
	return nil
}
