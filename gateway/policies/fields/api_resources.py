"""The resources that Kubernetes 1.36 serves, as discovery names them. A rule names a resource by its plural; under any
other name it matches nothing.

Custom resources are not known here, but one thing is: no name of a resource has capital letters.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gateway.policies.field_errors import quote
from gateway.policies.suggestions import similar

_ANY: Final = "*"

# Plural, kind and short names; the singular is the kind in small letters, for all of them.
_TABLE: Final = """
:bindings Binding
:componentstatuses ComponentStatus cs
:configmaps ConfigMap cm
:endpoints Endpoints ep
:events Event ev
:limitranges LimitRange limits
:namespaces Namespace ns
:nodes Node no
:persistentvolumeclaims PersistentVolumeClaim pvc
:persistentvolumes PersistentVolume pv
:pods Pod po
:podtemplates PodTemplate
:replicationcontrollers ReplicationController rc
:resourcequotas ResourceQuota quota
:secrets Secret
:serviceaccounts ServiceAccount sa
:services Service svc
admissionregistration.k8s.io:mutatingadmissionpolicies MutatingAdmissionPolicy
admissionregistration.k8s.io:mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding
admissionregistration.k8s.io:mutatingwebhookconfigurations MutatingWebhookConfiguration
admissionregistration.k8s.io:validatingadmissionpolicies ValidatingAdmissionPolicy
admissionregistration.k8s.io:validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding
admissionregistration.k8s.io:validatingwebhookconfigurations ValidatingWebhookConfiguration
apiextensions.k8s.io:customresourcedefinitions CustomResourceDefinition crd crds
apiregistration.k8s.io:apiservices APIService
apps:controllerrevisions ControllerRevision
apps:daemonsets DaemonSet ds
apps:deployments Deployment deploy
apps:replicasets ReplicaSet rs
apps:statefulsets StatefulSet sts
authentication.k8s.io:selfsubjectreviews SelfSubjectReview
authentication.k8s.io:tokenreviews TokenReview
authorization.k8s.io:localsubjectaccessreviews LocalSubjectAccessReview
authorization.k8s.io:selfsubjectaccessreviews SelfSubjectAccessReview
authorization.k8s.io:selfsubjectrulesreviews SelfSubjectRulesReview
authorization.k8s.io:subjectaccessreviews SubjectAccessReview
autoscaling:horizontalpodautoscalers HorizontalPodAutoscaler hpa
batch:cronjobs CronJob cj
batch:jobs Job
certificates.k8s.io:certificatesigningrequests CertificateSigningRequest csr
certificates.k8s.io:clustertrustbundles ClusterTrustBundle
certificates.k8s.io:podcertificaterequests PodCertificateRequest
coordination.k8s.io:leasecandidates LeaseCandidate
coordination.k8s.io:leases Lease
discovery.k8s.io:endpointslices EndpointSlice
events.k8s.io:events Event ev
flowcontrol.apiserver.k8s.io:flowschemas FlowSchema
flowcontrol.apiserver.k8s.io:prioritylevelconfigurations PriorityLevelConfiguration
internal.apiserver.k8s.io:storageversions StorageVersion
networking.k8s.io:ingressclasses IngressClass
networking.k8s.io:ingresses Ingress ing
networking.k8s.io:ipaddresses IPAddress ip
networking.k8s.io:networkpolicies NetworkPolicy netpol
networking.k8s.io:servicecidrs ServiceCIDR
node.k8s.io:runtimeclasses RuntimeClass
policy:poddisruptionbudgets PodDisruptionBudget pdb
rbac.authorization.k8s.io:clusterrolebindings ClusterRoleBinding
rbac.authorization.k8s.io:clusterroles ClusterRole
rbac.authorization.k8s.io:rolebindings RoleBinding
rbac.authorization.k8s.io:roles Role
resource.k8s.io:deviceclasses DeviceClass
resource.k8s.io:devicetaintrules DeviceTaintRule
resource.k8s.io:resourceclaims ResourceClaim
resource.k8s.io:resourceclaimtemplates ResourceClaimTemplate
resource.k8s.io:resourceslices ResourceSlice
scheduling.k8s.io:priorityclasses PriorityClass pc
storage.k8s.io:csidrivers CSIDriver
storage.k8s.io:csinodes CSINode
storage.k8s.io:csistoragecapacities CSIStorageCapacity
storage.k8s.io:storageclasses StorageClass sc
storage.k8s.io:volumeattachments VolumeAttachment
storage.k8s.io:volumeattributesclasses VolumeAttributesClass vac
storagemigration.k8s.io:storageversionmigrations StorageVersionMigration
"""


def _read(table: str) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    groups: dict[str, set[str]] = {}
    plurals: dict[str, set[str]] = {}
    for line in table.split("\n"):
        if line:
            group, _, rest = line.partition(":")
            plural, kind, *short = rest.split()
            groups.setdefault(plural, set()).add(group)
            for name in (kind.lower(), *short):
                plurals.setdefault(name, set()).add(plural)
    return {name: frozenset(each) for name, each in groups.items()}, {
        name: frozenset(each) for name, each in plurals.items()
    }


_GROUPS, _PLURALS = _read(_TABLE)
_BUILT_IN: Final = frozenset(group for groups in _GROUPS.values() for group in groups)


def resource_error(text: str, groups: Sequence[str]) -> str | None:
    """Why an entry of a rule's ``resources`` probably matches nothing in these API groups, and what was meant.

    Returns:
        The message; None if nothing is known against it, as of custom resources.
    """
    name, slash, sub = text.partition("/")
    if name == _ANY:
        return None
    meant = _meant(name.lower(), groups)
    if name in _GROUPS:
        return None if _serves(name, groups) else _elsewhere(name, groups)
    if meant:
        return f"no resource is called {quote(name)}: did you mean {quote(meant + slash + sub.lower())}?"
    if name != name.lower():
        return (
            f"no resource is called {quote(name)}, since none has capital letters: write its plural, as "
            "`kubectl api-resources` shows it"
        )
    return None


def _meant(name: str, groups: Sequence[str]) -> str:
    """The plural of the resource in these groups that has this name, in the plural or otherwise."""
    candidates = [name] if name in _GROUPS else sorted(_PLURALS.get(name, ()))
    return next((each for each in candidates if _serves(each, groups)), "") or _similar(name, groups)


def _similar(name: str, groups: Sequence[str]) -> str:
    """The one that is spelt almost so, where no other resources than the known ones can be."""
    if not groups or not _BUILT_IN.issuperset(groups):
        return ""
    return similar(name, [each for each in _GROUPS if _serves(each, groups)])


def _serves(resource: str, groups: Iterable[str]) -> bool:
    return any(group == _ANY or group in _GROUPS[resource] for group in groups)


def _elsewhere(name: str, groups: Sequence[str]) -> str | None:
    """Of a known resource: that it is in another group, where no custom resource of this name can be meant."""
    if not groups or not _BUILT_IN.issuperset(groups):
        return None
    where = " and ".join(quote(group) for group in sorted(_GROUPS[name]))
    return f"{name} are in the API group {where}, which this rule does not name"
