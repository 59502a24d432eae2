// The Kubernetes manifest: its references fit together, and it runs as the user of the image. No cluster runs here.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readYaml } from './read-yaml.ts';

const dockerfile = readFileSync(join(import.meta.dirname, '../../deploy/Dockerfile'), 'utf8');
const [publicService, internalService, { kind, spec: statefulSet }] = readYaml('kubernetes/dendro.yaml');
const pod = statefulSet.template.spec;
const [container] = pod.containers;

test('two services select the pod and target its two named ports', () => {
  for (const [service, port, name] of [
    [publicService, 4000, 'public'],
    [internalService, 4001, 'internal'],
  ]) {
    expect(service).toMatchObject({ kind: 'Service', spec: { ports: [{ port, targetPort: name }] } });
    expect(service.spec.selector).toEqual(statefulSet.template.metadata.labels);
  }
  expect(container.ports).toEqual([
    { name: 'public', containerPort: 4000 },
    { name: 'internal', containerPort: 4001 },
  ]);
});

test('the pod gets no variables of the services, whose names are those of flags of Dendro', () => {
  const variable = `${publicService.metadata.name.toUpperCase()}_PORT`;
  expect([variable, pod.enableServiceLinks]).toEqual(['DENDRO_PORT', false]);
});

test('the stateful set has one replica, whose volume is the data directory of the image', () => {
  expect(statefulSet).toMatchObject({
    replicas: 1,
    serviceName: 'dendro',
    selector: { matchLabels: statefulSet.template.metadata.labels },
  });
  const [claim] = statefulSet.volumeClaimTemplates;
  const [mount] = container.volumeMounts;
  expect([kind, mount.name]).toEqual(['StatefulSet', claim.metadata.name]);
  expect(dockerfile).toContain(`VOLUME ${mount.mountPath}\n`);
});

test('the pod runs as the user of the image, without privileges and with a read-only root file system', () => {
  const { runAsUser, runAsGroup, runAsNonRoot, fsGroup } = pod.securityContext;
  expect(dockerfile).toContain(`USER ${runAsUser}:${runAsGroup}\n`);
  expect([runAsNonRoot, fsGroup]).toEqual([true, runAsGroup]);
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('all three probes use the public port', () => {
  const { startupProbe, readinessProbe, livenessProbe } = container;
  for (const probe of [startupProbe, readinessProbe])
    expect(probe.httpGet).toEqual({ path: '/health/ready', port: 'public' });
  expect(livenessProbe.httpGet).toEqual({ path: '/health/live', port: 'public' });
});
