<!DOCTYPE PickedPoints>
<PickedPoints>
 <DocumentData>
  <DateTime time="16:00:00" date="2014-12-31"/>
  <User name="someone"/>
  <DataFileName name="skull.ply"/>
  <templateName name=""/>
 </DocumentData>
 <point x="0.044259" y="0.467733" z="-0.060032" active="1" name="nasion"/>
 <point z="0.018390" name="left &amp; up" y="1.335375" x="0.017893"/>
 <point x="0" y="0" z="0" active="0" name="bregma"/>
</PickedPoints>
